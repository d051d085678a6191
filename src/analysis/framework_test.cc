#include "analysis/framework.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

std::string framework_of(const std::vector<SnapshotBuilder::PythonFrame>& frames) {
  SnapshotBuilder builder;
  builder.segment_alloc(0x7f0000000000, 2 * kMiB).python(frames).alloc(0x7f0000000000, 512);
  return training_framework(builder.build());
}

TEST(Framework, IsThatOfTheLoop) {
  EXPECT_EQ(framework_of({{"torch/nn/modules/linear.py", 1, "forward"},
                          {"/venv/lib/python3.11/site-packages/accelerate/accelerator.py", 2, "backward"},
                          {"/venv/lib/python3.11/site-packages/transformers/trainer.py", 3, "train"},
                          {"train.py", 4, "main"}}),
            "transformers");
  EXPECT_EQ(framework_of({{"site-packages/lightning/pytorch/trainer/call.py", 1, "call"}}), "lightning");
  EXPECT_EQ(framework_of({{"site-packages/deepspeed/runtime/engine.py", 1, "forward"}}), "deepspeed");
}

TEST(Framework, IsNoneForALibrarysModelInALoopOfOnesOwn) {
  EXPECT_EQ(framework_of(
                {{"site-packages/transformers/models/llama/modeling_llama.py", 1, "forward"}, {"train.py", 2, "main"}}),
            "");
  EXPECT_EQ(framework_of({}), "");
}

}  // namespace
}  // namespace oomscope
