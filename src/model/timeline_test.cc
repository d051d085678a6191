// Pairing of events, pools, and the state before the first event, on recordings of a few lines.
#include "model/timeline.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;
constexpr PoolId kUserPool{.first = 0, .second = 1};

int64_t to_512(int64_t request) { return (request + 511) / 512 * 512; }

Timeline timeline_of(const Snapshot& snapshot, int32_t device = 0) {
  return build_timeline(snapshot, device, {.round = to_512});
}

const StartSegment& only_segment(const Timeline& timeline) {
  EXPECT_EQ(timeline.start.size(), 1u);
  static const StartSegment kNone;
  return timeline.start.empty() ? kNone : timeline.start[0];
}

std::vector<int64_t> sizes_of(const StartSegment& segment) {
  std::vector<int64_t> sizes;
  for (const StartBlock& block : segment.blocks) sizes.push_back(block.size);
  return sizes;
}

// --- pairing ---------------------------------------------------------------------------------------------------------

TEST(Pairing, TiesAnAllocToItsFree) {
  const Snapshot snapshot = SnapshotBuilder()
                                .segment_alloc(kA, 20 * kMiB)
                                .alloc(kA, 100)
                                .free(kA, 100)
                                .segment(kA, {{.size = 20 * kMiB}})
                                .build();
  const Timeline timeline = timeline_of(snapshot);
  ASSERT_EQ(timeline.allocations.size(), 1u);
  EXPECT_EQ(timeline.allocations[0].begin, 1u);
  EXPECT_EQ(timeline.allocations[0].free_requested, 2u);
  EXPECT_EQ(timeline.allocations[0].free_completed, 3u);
  EXPECT_EQ(timeline.allocation_of, (LargeVector<uint32_t>{kNoAllocation, 0, 0, 0}));
}

TEST(Pairing, NextAllocAtTheSameAddressIsAnotherAllocation) {
  const Snapshot snapshot = SnapshotBuilder().alloc(kA, 1).free(kA, 1).alloc(kA, 2).free(kA, 2).build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(timeline.allocations.size(), 2u);
  EXPECT_EQ(timeline.allocation_of, (LargeVector<uint32_t>{0, 0, 0, 1, 1, 1}));
}

TEST(Pairing, CompletionMayComeMuchLater) {
  const Snapshot snapshot =
      SnapshotBuilder().alloc(kA, 1).free_requested(kA, 1).alloc(kB, 2).free_completed(kA, 1).build();
  EXPECT_EQ(timeline_of(snapshot).allocations[0].free_completed, 3u);
}

// The free's own call has its stack; a later call that finds the block done has another.
TEST(Pairing, CompletionRightBehindItsFreeMayBeOfALaterCall) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, kMiB).alloc(kA + kMiB, kMiB);
  b.called_from("a").free(kA, kMiB).free_requested(kA + kMiB, kMiB);
  b.called_from("b").free_completed(kA + kMiB, kMiB);
  const Snapshot snapshot = b.build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_TRUE(is_freed_at_once(timeline, 3));
  EXPECT_FALSE(is_freed_at_once(timeline, 5));
}

TEST(Pairing, SecondFreeOfAnAddressIsAnOrphan) {
  const Snapshot snapshot = SnapshotBuilder().alloc(kA, 1).free(kA, 1).free(kA, 1).build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(timeline.orphan_frees, 2);
  EXPECT_EQ(timeline.allocation_of[3], kNoAllocation);
}

TEST(Pairing, FreeOutsideAllSegmentsOfTheStartIsAnOrphan) {
  const Snapshot snapshot = SnapshotBuilder().free(kA, 1).build();
  EXPECT_EQ(timeline_of(snapshot).orphan_frees, 1);
}

TEST(Pairing, FreeOfAnUnknownAddressIsAGhosts) {
  const Snapshot snapshot = SnapshotBuilder().free(kA, 5 * kMiB).segment(kA, {{.size = 20 * kMiB}}).build();
  const Timeline timeline = timeline_of(snapshot);
  ASSERT_EQ(timeline.allocations.size(), 1u);
  EXPECT_EQ(timeline.allocations[0].begin, kNoEvent);
  EXPECT_EQ(timeline.orphan_frees, 0);
  EXPECT_TRUE(timeline.starts_mid_life);
}

// --- driver events backwards
// --------------------------------------------------------------------------------------------

TEST(StartState, IsEmptyWhereAllSegmentsWereObtainedInTheWindow) {
  const Snapshot snapshot =
      SnapshotBuilder().segment_alloc(kA, 20 * kMiB).alloc(kA, 1).segment(kA, {live_block(20 * kMiB)}).build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_TRUE(timeline.start.empty());
  EXPECT_FALSE(timeline.starts_mid_life);
}

TEST(StartState, HoldsASegmentThatWasFreedInTheWindow) {
  const Snapshot snapshot = SnapshotBuilder().segment_free(kA, 20 * kMiB).build();
  const StartSegment segment = only_segment(timeline_of(snapshot));
  EXPECT_EQ(segment.address, kA);
  EXPECT_EQ(sizes_of(segment), (std::vector<int64_t>{20 * kMiB}));
  EXPECT_FALSE(segment.is_small);
}

TEST(StartState, SegmentOfTwoMiBIsSmall) {
  const Snapshot snapshot = SnapshotBuilder().segment_free(kA, 2 * kMiB).build();
  EXPECT_TRUE(only_segment(timeline_of(snapshot)).is_small);
}

TEST(StartState, HoldsPagesThatWereUnmappedInTheWindow) {
  const Snapshot snapshot = SnapshotBuilder().segment_unmap(kA, 40 * kMiB).build();
  const StartSegment segment = only_segment(timeline_of(snapshot));
  EXPECT_TRUE(segment.is_expandable);
  EXPECT_EQ(sizes_of(segment), (std::vector<int64_t>{40 * kMiB}));
}

TEST(StartState, PagesOfTheLargePoolFollowTheLargeSegmentSize) {
  const Snapshot snapshot = SnapshotBuilder().segment_unmap(kA, 32 * kMiB).build();
  EXPECT_TRUE(only_segment(timeline_of(snapshot)).is_small);
  const Timeline timeline =
      build_timeline(snapshot, 0, {.round = to_512, .large_page_bytes = 32 * kMiB, .pool_spans = {}, .corrected = {}});
  EXPECT_FALSE(only_segment(timeline).is_small);
}

TEST(StartState, SmallBlockShowsThatItsPagesAreOfTheSmallPool) {
  const Snapshot snapshot = SnapshotBuilder().free(kA, 512).segment_unmap(kA, 20 * kMiB).build();
  EXPECT_TRUE(only_segment(timeline_of(snapshot)).is_small);
}

TEST(StartState, LeavesOutPagesThatWereMappedInTheWindow) {
  const Snapshot snapshot = SnapshotBuilder()
                                .segment_map(kA + 20 * kMiB, 20 * kMiB)
                                .alloc(kA + 20 * kMiB, 20 * kMiB)
                                .segment(kA, {live_block(20 * kMiB), live_block(20 * kMiB)}, {.expandable = true})
                                .build();
  const StartSegment segment = only_segment(timeline_of(snapshot));
  EXPECT_EQ(segment.size, 20 * kMiB);
}

TEST(StartState, RunsOfOneRangeHaveAHoleBetweenThem) {
  const Snapshot snapshot =
      SnapshotBuilder()
          .segment_map(kA + 20 * kMiB, 20 * kMiB)
          .alloc(kA + 20 * kMiB, 20 * kMiB)
          .segment(kA, {live_block(20 * kMiB), live_block(20 * kMiB), live_block(20 * kMiB)}, {.expandable = true})
          .build();
  const StartSegment segment = only_segment(timeline_of(snapshot));
  ASSERT_EQ(segment.blocks.size(), 3u);
  EXPECT_EQ(segment.blocks[1].state, StartState::unmapped);
  EXPECT_EQ(segment.blocks[1].size, 20 * kMiB);
}

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(ExpandableReserve, IsTheDistanceOfTwoRangesThatAreThereTogether) {
  const Snapshot snapshot =
      SnapshotBuilder().segment_map(kA, 20 * kMiB).stream(1).segment_map(kA + 9 * kGiB, 20 * kMiB).build();
  EXPECT_EQ(timeline_of(snapshot).expandable_reserve_bytes, static_cast<int64_t>(9 * kGiB));
}

TEST(ExpandableReserve, IsNotTheDistanceToARangeThatWasGivenBackBefore) {
  const Snapshot snapshot = SnapshotBuilder()
                                .segment_map(kA, 20 * kMiB)
                                .segment_unmap(kA, 20 * kMiB)
                                .segment_map(kA + 2 * kGiB, 20 * kMiB)
                                .build();
  EXPECT_EQ(timeline_of(snapshot).expandable_reserve_bytes, 0);
}

// --- ghosts
// -------------------------------------------------------------------------------------------------------------

TEST(Ghost, StillLiveAtTheEndHasItsExactSize) {
  const Snapshot snapshot = SnapshotBuilder().alloc(kB, 1).segment(kA, {live_block(12 * kMiB, 11 * kMiB + 1)}).build();
  const StartSegment segment = only_segment(timeline_of(snapshot));
  EXPECT_EQ(sizes_of(segment), (std::vector<int64_t>{12 * kMiB}));
  EXPECT_EQ(segment.blocks[0].requested_size, 11 * kMiB + 1);
  EXPECT_EQ(segment.blocks[0].state, StartState::allocated);
}

TEST(Ghost, FreedInTheWindowHasTheRoundedSizeInTheSmallPool) {
  const Snapshot snapshot = SnapshotBuilder().free(kA + 512, 1000).segment(kA, {{.size = 2 * kMiB}}).build();
  EXPECT_EQ(sizes_of(only_segment(timeline_of(snapshot))), (std::vector<int64_t>{512, 1024, 2 * kMiB - 1536}));
}

TEST(Ghost, FreedInTheWindowHasTheRoundedSizeInPages) {
  const Snapshot snapshot =
      SnapshotBuilder().free(kA, 19 * kMiB + 1).segment(kA, {{.size = 20 * kMiB}}, {.expandable = true}).build();
  EXPECT_EQ(sizes_of(only_segment(timeline_of(snapshot))), (std::vector<int64_t>{19 * kMiB + 512, kMiB - 512}));
}

TEST(Ghost, GapOfAtMostOneMiBBehindItIsItsTail) {
  const Snapshot snapshot = SnapshotBuilder().free(kA, 11 * kMiB).segment(kA, {{.size = 12 * kMiB}}).build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(sizes_of(only_segment(timeline)), (std::vector<int64_t>{12 * kMiB}));
  EXPECT_EQ(timeline.uncertain_ghosts, 0);
}

TEST(Ghost, LargerGapLeavesItsSizeUncertain) {
  const Snapshot snapshot = SnapshotBuilder().free(kA, 10 * kMiB).segment(kA, {{.size = 12 * kMiB}}).build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(sizes_of(only_segment(timeline)), (std::vector<int64_t>{10 * kMiB, 2 * kMiB}));
  EXPECT_EQ(timeline.uncertain_ghosts, 1);
}

TEST(Ghost, AllocCloseBehindItShowsItsEnd) {
  const Snapshot snapshot =
      SnapshotBuilder()
          .alloc(kA + 5 * kMiB + 512 * 1024, 5 * kMiB)
          .free(kA, 5 * kMiB)
          .segment(kA, {{.size = 5 * kMiB + 512 * 1024}, live_block(5 * kMiB), {.size = 9 * kMiB + 512 * 1024}})
          .build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(sizes_of(only_segment(timeline)), (std::vector<int64_t>{5 * kMiB + 512 * 1024, 14 * kMiB + 512 * 1024}));
  EXPECT_EQ(timeline.uncertain_ghosts, 0);
}

TEST(Ghost, AllocAfterItsFreeShowsNothing) {
  const Snapshot snapshot =
      SnapshotBuilder()
          .free(kA, 5 * kMiB)
          .alloc(kA + 5 * kMiB + 512, 5 * kMiB)
          .segment(kA, {{.size = 5 * kMiB + 512}, live_block(5 * kMiB), {.size = 10 * kMiB - 512}})
          .build();
  EXPECT_EQ(timeline_of(snapshot).uncertain_ghosts, 1);
}

TEST(Ghost, CompletionAloneMeansPendingAtTheStart) {
  const Snapshot snapshot = SnapshotBuilder().free_completed(kA, 20 * kMiB).segment(kA, {{.size = 20 * kMiB}}).build();
  const StartSegment segment = only_segment(timeline_of(snapshot));
  ASSERT_EQ(segment.blocks.size(), 1u);
  EXPECT_EQ(segment.blocks[0].state, StartState::pending);
}

// No event that is left is earlier than the segments, so they are the state.
TEST(Ghost, AFileCutAmongItsSegmentsHasThoseThatAreLeft) {
  Snapshot snapshot = SnapshotBuilder().segment(kA, {live_block(5 * kMiB), {.size = 15 * kMiB}}).build();
  snapshot.complete = false;
  snapshot.settings.reset();
  snapshot.traces.resize(1);
  EXPECT_EQ(sizes_of(only_segment(timeline_of(snapshot))), (std::vector<int64_t>{5 * kMiB, 15 * kMiB}));
}

TEST(Ghost, PendingAtTheEndWithoutAnyEventWasPendingAtTheStart) {
  const FinalBlock pending{.size = 20 * kMiB, .requested = 20 * kMiB, .state = BlockState::active_pending_free};
  const Snapshot snapshot = SnapshotBuilder().alloc(kB, 1).segment(kA, {pending}).build();
  EXPECT_EQ(only_segment(timeline_of(snapshot)).blocks[0].state, StartState::pending);
}

TEST(Ghost, FreeSpaceBetweenGhostsIsOneBlock) {
  const Snapshot snapshot = SnapshotBuilder()
                                .alloc(kA + 6 * kMiB, kMiB + 512)
                                .free(kA + 6 * kMiB, kMiB + 512)
                                .segment(kA, {live_block(4 * kMiB), {.size = 12 * kMiB}, live_block(4 * kMiB)})
                                .build();
  EXPECT_EQ(sizes_of(only_segment(timeline_of(snapshot))), (std::vector<int64_t>{4 * kMiB, 12 * kMiB, 4 * kMiB}));
}

// --- pools and devices
// ----------------------------------------------------------------------------------------------------

TEST(Pools, AllocationIsInThePoolOfItsSegment) {
  const Snapshot snapshot = SnapshotBuilder()
                                .segment_alloc(kA, 20 * kMiB)
                                .alloc(kA, 20 * kMiB)
                                .segment(kA, {live_block(20 * kMiB)}, {.pool = kUserPool})
                                .build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(timeline.pools[timeline.allocations[0].pool_index], kUserPool);
}

TEST(Pools, AllocationBeforeTheSegmentWasObtainedIsInTheDefaultPool) {
  const Snapshot snapshot = SnapshotBuilder()
                                .segment_alloc(kA, 20 * kMiB)
                                .alloc(kA, 20 * kMiB)
                                .free(kA, 20 * kMiB)
                                .segment_free(kA, 20 * kMiB)
                                .segment_alloc(kA, 20 * kMiB)
                                .alloc(kA, 20 * kMiB)
                                .segment(kA, {live_block(20 * kMiB)}, {.pool = kUserPool})
                                .build();
  const Timeline timeline = timeline_of(snapshot);
  ASSERT_EQ(timeline.allocations.size(), 2u);
  EXPECT_EQ(timeline.pools[timeline.allocations[0].pool_index], PoolId{});
  EXPECT_EQ(timeline.pools[timeline.allocations[1].pool_index], kUserPool);
}

// 20 of its 40 MiB are unmapped at the end. Before the range was empty it may have been another pool's.
TEST(Pools, ExpandableRangeIsOfOnePoolWhileAnyOfItIsMapped) {
  SnapshotBuilder b;
  const PoolId graph{0, 1};
  b.segment_map(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).segment_unmap(kA, 20 * kMiB);
  b.segment_map(kA, 20 * kMiB).alloc(kA, 12 * kMiB);
  b.segment_map(kA + 20 * kMiB, 20 * kMiB).alloc(kA + 20 * kMiB, 20 * kMiB).free(kA + 20 * kMiB, 20 * kMiB);
  b.segment_unmap(kA + 20 * kMiB, 20 * kMiB);
  b.segment(kA, {live_block(12 * kMiB), {.size = 8 * kMiB}}, {.expandable = true, .pool = graph});
  const Snapshot snapshot = b.build();
  const Timeline timeline = timeline_of(snapshot);
  ASSERT_EQ(timeline.allocations.size(), 3U);
  EXPECT_EQ(timeline.pools[timeline.allocations[0].pool_index], PoolId{});
  EXPECT_EQ(timeline.pools[timeline.allocations[1].pool_index], graph);
  EXPECT_EQ(timeline.pools[timeline.allocations[2].pool_index], graph);
}

TEST(Pools, RecordedPoolOfTheEventDecides) {
  const Snapshot snapshot = SnapshotBuilder()
                                .pools_recorded(kUserPool)
                                .segment_alloc(kA, 20 * kMiB)
                                .alloc(kA, 20 * kMiB)
                                .free(kA, 20 * kMiB)
                                .segment_free(kA, 20 * kMiB)
                                .build();
  const Timeline timeline = timeline_of(snapshot);
  EXPECT_EQ(timeline.pools[timeline.allocations[0].pool_index], kUserPool);
}

TEST(Devices, AreThoseWithEvents) {
  const Snapshot snapshot = SnapshotBuilder().segment(kA, {{.size = 2 * kMiB}}).device(2).alloc(kA, 1).build();
  EXPECT_EQ(devices_of(snapshot), (std::vector<int32_t>{2}));
}

TEST(Devices, ThatOnlyADumpWroteToAreNone) {
  Snapshot snapshot = SnapshotBuilder().alloc(kA, 1).device(1).alloc(kA, 1).build();
  snapshot.traces[1].action[0] = Action::snapshot;
  EXPECT_EQ(devices_of(snapshot), (std::vector<int32_t>{0}));
}

TEST(Devices, WithoutEventsAreThoseWithSegments) {
  const Snapshot snapshot = SnapshotBuilder().device(1).segment(kA, {{.size = 2 * kMiB}}).build();
  EXPECT_EQ(devices_of(snapshot), (std::vector<int32_t>{1}));
}

TEST(Devices, AreKeptApart) {
  const Snapshot snapshot =
      SnapshotBuilder().segment_alloc(kA, 20 * kMiB).alloc(kA, 1).device(1).segment_free(kA, 20 * kMiB).build();
  EXPECT_EQ(timeline_of(snapshot, 0).allocations.size(), 1u);
  EXPECT_TRUE(timeline_of(snapshot, 1).allocations.empty());
  EXPECT_EQ(only_segment(timeline_of(snapshot, 1)).address, kA);
}

}  // namespace
}  // namespace oomscope
