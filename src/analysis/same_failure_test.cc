#include "analysis/same_failure.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

// One request that failed: 5 MiB, for which a segment of 20 MiB was asked, with 3.5 MiB free.
Snapshot recording() {
  Snapshot snapshot;
  Trace& trace = snapshot.traces.emplace_back();
  trace.action = {Action::alloc, Action::oom};
  trace.size = {512, 5 * kMiB};
  trace.addr = {0x1000, static_cast<uint64_t>(7 * kMiB / 2)};
  return snapshot;
}

bool may_be_same(std::optional<double> tried, std::optional<double> free) {
  std::vector<TextEvidence> logs(1);
  TextMessage& message = logs[0].messages.emplace_back();
  message.family = Family::allocator;
  message.strength = 5;
  message.figures[Figure::tried] = tried;
  message.figures[Figure::free] = free;
  return may_be_same_failure(find_text_facts(logs), recording());
}

TEST(SameFailure, RequestAndFreeMemoryAreThoseOfTheRecording) {
  EXPECT_TRUE(may_be_same(20 * kMiB, 3.5 * kMiB));
  EXPECT_TRUE(may_be_same(5 * kMiB, 3.5 * kMiB));
  EXPECT_TRUE(may_be_same(20 * kMiB, std::nullopt));
}

TEST(SameFailure, OtherFiguresAreOfAnother) {
  EXPECT_FALSE(may_be_same(2.0 * kGiB, 3.5 * kMiB));
  EXPECT_FALSE(may_be_same(20 * kMiB, 9 * kMiB));
}

TEST(SameFailure, AMessageWithoutFiguresMayBeOfAny) { EXPECT_TRUE(may_be_same(std::nullopt, std::nullopt)); }

}  // namespace
}  // namespace oomscope
