// Which events are suspected, on recordings of a few lines in which one address is wrong.
#include "replay/suspects.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;
constexpr uint64_t kWrong = 0x7f0080000000;

std::vector<Suspect> suspects_in(const Snapshot& snapshot) {
  const Timeline timeline = build_timeline(snapshot, 0, {.round = [](int64_t bytes) { return bytes; }});
  return find_suspects(timeline, 64);
}

bool suspects(const Snapshot& snapshot, const Suspect& expected) {
  const std::vector<Suspect> found = suspects_in(snapshot);
  return std::find(found.begin(), found.end(), expected) != found.end();
}

// One segment, one block that is freed.
SnapshotBuilder one_block(uint64_t segment, uint64_t alloc, uint64_t request, uint64_t completion) {
  SnapshotBuilder b;
  b.segment_alloc(segment, 20 * kMiB).alloc(alloc, 5 * kMiB);
  b.free_requested(request, 5 * kMiB).free_completed(completion, 5 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}});
  return b;
}

TEST(Suspects, AreNoneWhereEverythingEnds) { EXPECT_TRUE(suspects_in(one_block(kA, kA, kA, kA).build()).empty()); }

TEST(Suspects, AllocThatIsNeverFreed) {
  EXPECT_TRUE(suspects(one_block(kA, kWrong, kA, kA).build(), {.event = 1, .address = kA}));
}

TEST(Suspects, RequestWithoutItsCompletion) {
  EXPECT_TRUE(suspects(one_block(kA, kA, kWrong, kA).build(), {.event = 2, .address = kA}));
}

TEST(Suspects, CompletionWithoutItsRequest) {
  EXPECT_TRUE(suspects(one_block(kA, kA, kA, kWrong).build(), {.event = 3, .address = kA}));
}

TEST(Suspects, SegmentThatIsNotThereAtTheEnd) {
  EXPECT_TRUE(suspects(one_block(kWrong, kA, kA, kA).build(), {.event = 0, .address = kA}));
}

TEST(Suspects, SegmentFreeOfAnotherSegment) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).segment_alloc(kB, 20 * kMiB).segment_free(kB, 20 * kMiB).segment_free(kB, 20 * kMiB);
  const Snapshot snapshot = b.build();
  EXPECT_TRUE(suspects(snapshot, {.event = 2, .address = kA}));
  EXPECT_TRUE(suspects(snapshot, {.event = 3, .address = kA}));
}

TEST(Suspects, FreeOfABlockThatIsThereAtTheEnd) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).alloc(kA + 5 * kMiB, 5 * kMiB).free(kA, 5 * kMiB);
  b.segment(kA, {live_block(5 * kMiB), {.size = 15 * kMiB}});
  const Snapshot snapshot = b.build();
  EXPECT_TRUE(suspects(snapshot, {.event = 3, .address = kA + 5 * kMiB}));
}

TEST(Suspects, MapOfPagesThatAreNotThereAtTheEnd) {
  SnapshotBuilder b;
  b.segment_map(kWrong, 20 * kMiB).segment(kA, {{.size = 20 * kMiB}}, {.expandable = true});
  EXPECT_TRUE(suspects(b.build(), {.event = 0, .address = kA}));
}

TEST(Suspects, UnmapIsLeftToTheEngine) {
  SnapshotBuilder b;
  b.segment_map(kA, 20 * kMiB).segment_unmap(kWrong, 20 * kMiB);
  const Snapshot snapshot = b.build();
  EXPECT_TRUE(suspects(snapshot, {.event = 1, .address = kA}));
  EXPECT_TRUE(suspects(snapshot, {.event = 1, .address = kUnknownAddress}));
}

TEST(Suspects, OfARecordingThatWasCutAreNone) {
  Snapshot snapshot = one_block(kA, kWrong, kA, kA).build();
  snapshot.complete = false;
  EXPECT_TRUE(suspects_in(snapshot).empty());
}

TEST(Suspects, AreNotMoreThanAskedFor) {
  const Snapshot snapshot = one_block(kA, kWrong, kA, kA).build();
  const Timeline timeline = build_timeline(snapshot, 0, {.round = [](int64_t bytes) { return bytes; }});
  EXPECT_EQ(find_suspects(timeline, 1).size(), 1u);
}

}  // namespace
}  // namespace oomscope
