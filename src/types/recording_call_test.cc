#include "types/recording_call.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(RecordingCall, IsOneThatTheWriterTakes) {
  Snapshot snapshot;
  snapshot.blocks.emplace_back();
  EXPECT_EQ(recording_call(snapshot),
            "torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=100000, "
            "trace_alloc_record_context=True)");
  snapshot.features.block_addresses = true;
  EXPECT_EQ(recording_call(snapshot), "torch.cuda.memory._record_memory_history(stacks=\"python\")");
}

TEST(RecordingCall, OfAFileWithoutBlocksIsOfToday) {
  EXPECT_EQ(recording_call(Snapshot{}), "torch.cuda.memory._record_memory_history(stacks=\"python\")");
}

}  // namespace
}  // namespace oomscope
