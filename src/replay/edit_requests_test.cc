// A recording of a few lines as a changed program would have made it.
#include <gtest/gtest.h>

#include "replay/what_if.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;

RequestStream requests_in(const Snapshot& snapshot) {
  return requests_of(*verify(snapshot, devices_of(snapshot)[0], {.limit_bytes = {}, .rules = default_rule_set()}));
}

Outcome replayed(const RequestStream& requests, std::optional<int64_t> cap = std::nullopt) {
  return replay_what_if(requests, {.rules = default_rule_set(), .settings = {}, .cap_bytes = cap});
}

// 20 MiB that stay, 30 MiB beside them, and 40 MiB that are refused: events 1, 3 and 4.
RequestStream twenty_thirty_and_a_failure() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB);
  b.oom(40 * kMiB);
  b.segment(kA, {live_block(20 * kMiB)}).segment(kB, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  return requests_in(snapshot);
}

TEST(Edits, NoneLeaveTheRequestsAsTheyWere) {
  const RequestStream requests = twenty_thirty_and_a_failure();
  const RequestStream same = with_edits(requests, {});
  EXPECT_EQ(same.kind, requests.kind);
  EXPECT_EQ(same.id, requests.id);
  EXPECT_EQ(same.size, requests.size);
}

TEST(Edits, ABlockThatIsFreedBeforeItsBirthIsNotAskedFor) {
  const RequestStream changed =
      with_edits(twenty_thirty_and_a_failure(),
                 {.blocks = {{.allocation = 0, .free_at = 0}}, .added = {}, .last_failure_bytes = {}});
  const Outcome outcome = replayed(changed, 80 * kMiB);
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.peak_requested, 70 * kMiB);
}

TEST(Edits, ABlockThatIsFreedEarlierIsThereUntilThen) {
  const RequestStream changed =
      with_edits(twenty_thirty_and_a_failure(),
                 {.blocks = {{.allocation = 0, .free_at = 4}}, .added = {}, .last_failure_bytes = {}});
  const Outcome outcome = replayed(changed, 80 * kMiB);
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.num_alloc_retries, 1);
}

TEST(Edits, SizesOfBlocksAndOfTheFailureShrink) {
  const RequestStream changed =
      with_edits(twenty_thirty_and_a_failure(),
                 {.blocks = {{.allocation = 1, .size = 12 * kMiB}}, .added = {}, .last_failure_bytes = 14 * kMiB});
  EXPECT_EQ(replayed(changed).peak_requested, 46 * kMiB);
}

TEST(Edits, AFailureOfNoBytesIsNotMade) {
  const RequestStream changed =
      with_edits(twenty_thirty_and_a_failure(), {.blocks = {}, .added = {}, .last_failure_bytes = 0});
  const Outcome outcome = replayed(changed, 50 * kMiB);
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.peak_requested, 50 * kMiB);
}

TEST(Edits, AddedRequestsStayToTheEnd) {
  const RequestStream changed =
      with_edits(twenty_thirty_and_a_failure(),
                 {.blocks = {}, .added = {{.event = 2, .size = 10 * kMiB}}, .last_failure_bytes = 0});
  EXPECT_EQ(replayed(changed).peak_requested, 60 * kMiB);
  EXPECT_FALSE(replayed(changed, 55 * kMiB).completed);
}

TEST(Cap, HoldsFromItsEventOn) {
  constexpr uint64_t kC = 0x7f0080000000;
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment_alloc(kB, 10 * kMiB).alloc(kB, 10 * kMiB);
  b.free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB).segment_alloc(kC, 2 * kMiB).alloc(kC, 512);
  b.segment(kB, {live_block(10 * kMiB)}).segment(kC, {live_block(512), {.size = 2 * kMiB - 512}});
  const Snapshot snapshot = b.build();
  WhatIf question{.rules = default_rule_set(), .settings = {}, .cap_bytes = 16 * kMiB};
  EXPECT_FALSE(replay_what_if(requests_in(snapshot), question).completed);
  question.cap_from_event = 6;
  const Outcome outcome = replay_what_if(requests_in(snapshot), question);
  EXPECT_TRUE(outcome.completed);
  EXPECT_LE(outcome.peak_reserved, 16 * kMiB);  // under the cap, and not what was reserved before it
}

}  // namespace
}  // namespace oomscope
