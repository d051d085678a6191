// Replays of recordings of a few lines: what is exact, what is a difference, whose release it was.
#include "replay/exact_replay.h"

#include <gtest/gtest.h>

#include "replay/verify.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;
constexpr uint64_t kC = 0x7f0080000000;
constexpr PoolId kUserPool{.first = 0, .second = 1};

// Two blocks in one segment; the first one is freed and given out again. Event 4 is the second alloc.
SnapshotBuilder two_blocks() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).free(kA, 5 * kMiB).alloc(kA, 4 * kMiB);
  b.alloc(kA + 4 * kMiB, 8 * kMiB);
  b.segment(kA, {live_block(4 * kMiB), live_block(8 * kMiB), {.size = 8 * kMiB}});
  return b;
}

// The replay of a snapshot under torch-2.11 and, if given, a limit.
std::unique_ptr<Verification> replay_of(const Snapshot& snapshot, std::optional<int64_t> limit = std::nullopt) {
  VerifyOptions options{.limit_bytes = limit, .rules = default_rule_set()};
  return verify(snapshot, devices_of(snapshot)[0], options);
}

uint32_t first_difference(const Snapshot& snapshot, std::optional<int64_t> limit = std::nullopt) {
  const std::unique_ptr<Verification> v = replay_of(snapshot, limit);
  return v->replay->first_difference() ? v->replay->first_difference()->event : kNoEvent;
}

// --- exactness -------------------------------------------------------------------------------------------------------

TEST(ExactReplay, CountsAllocsAndDriverEvents) {
  const Snapshot snapshot = two_blocks().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->counts().alloc_total, 3);
  EXPECT_EQ(v->replay->counts().alloc_exact, 3);
  EXPECT_EQ(v->replay->counts().driver_total, 1);
  EXPECT_EQ(v->replay->counts().driver_exact, 1);
}

TEST(ExactReplay, PeaksNameTheirEvent) {
  const Snapshot snapshot = two_blocks().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_EQ(v->replay->peak_allocated().bytes, 12 * kMiB);
  EXPECT_EQ(v->replay->peak_allocated().event, 5u);
  EXPECT_EQ(v->replay->peak_reserved().bytes, 20 * kMiB);
}

TEST(ExactReplay, OneIdleSmallSegmentIsTheFirstTensorOfTheProcess) {
  SnapshotBuilder b = two_blocks();
  b.segment(kB, {{.size = 2 * kMiB, .requested = 4}});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_TRUE(v->replay->from_the_beginning());
  EXPECT_EQ(v->replay->allocator().stats().num_device_alloc, 2);
  EXPECT_EQ(v->replay->allocator().stats().allocation.all().allocated(), 4);
}

TEST(ExactReplay, LiveBlocksAtTheStartAreNotTheBeginning) {
  SnapshotBuilder b;
  b.free(kA, 20 * kMiB).segment(kA, {{.size = 20 * kMiB}});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_FALSE(v->replay->from_the_beginning());
}

TEST(ExactReplay, StopsWhereItIsTold) {
  const Snapshot snapshot = two_blocks().build();
  Timeline timeline = build_timeline(snapshot, 0, {.round = [](int64_t bytes) { return bytes; }});
  ExactReplay replay(timeline, {.rules = default_rule_set(), .settings = {}, .limit_bytes = {}});
  replay.run(2);
  EXPECT_EQ(replay.position(), 2u);
  EXPECT_EQ(replay.allocator().stats().allocation.all().current, 1);
  replay.run();
  EXPECT_EQ(replay.allocator().stats().allocation.all().current, 2);
}

TEST(ExactReplay, PendingBlockComesBackAtItsCompletion) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free_requested(kA, 20 * kMiB);
  b.segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);   // a is still pending
  b.free_completed(kA, 20 * kMiB).alloc(kA, 20 * kMiB);  // now it is not
  b.segment(kA, {live_block(20 * kMiB)}).segment(kB, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  EXPECT_TRUE(replay_of(snapshot)->exact());
}

TEST(ExactReplay, ExpandableSegmentsGrowAsRecorded) {
  SnapshotBuilder b;
  b.conf("expandable_segments:True");
  b.segment_map(kA, 20 * kMiB).alloc(kA, 15 * kMiB);
  b.segment_map(kA + 20 * kMiB, 20 * kMiB).alloc(kA + 15 * kMiB, 8 * kMiB);
  b.segment(kA, {live_block(15 * kMiB), live_block(8 * kMiB), {.size = 17 * kMiB}}, {.expandable = true});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->counts().driver_exact, 2);
}

// --- one altered event -----------------------------------------------------------------------------------------------

Snapshot altered(size_t event, int64_t by = 512) {
  Snapshot snapshot = two_blocks().build();
  AddressColumn& addr = snapshot.traces[0].addr;
  addr.set(event, addr[event] + static_cast<uint64_t>(by));
  return snapshot;
}

// The free block in front of the hole can grow more than the one at the end of the range, which ends at 100 MiB.
TEST(ExactReplay, ExpandableRangeIsAsShortAsPlacementsSay) {
  SnapshotBuilder b;
  b.conf("expandable_segments:True");
  b.segment_map(kA, 20 * kMiB).alloc(kA, 12 * kMiB);
  b.segment_map(kA + 20 * kMiB, 40 * kMiB).alloc(kA + 12 * kMiB, 48 * kMiB);
  b.segment_map(kA + 60 * kMiB, 20 * kMiB).alloc(kA + 60 * kMiB, 20 * kMiB);
  b.segment_map(kA + 80 * kMiB, 20 * kMiB).alloc(kA + 80 * kMiB, 10 * kMiB);
  b.free(kA + 12 * kMiB, 48 * kMiB).segment_unmap(kA + 20 * kMiB, 40 * kMiB);
  b.alloc(kA + 90 * kMiB, 7 * kMiB);
  b.segment(kA, {live_block(12 * kMiB), {.size = 8 * kMiB}}, {.expandable = true});
  b.segment(kA + 60 * kMiB, {live_block(20 * kMiB), live_block(10 * kMiB), live_block(7 * kMiB), {.size = 3 * kMiB}},
            {.expandable = true});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_FALSE(v->replay->first_difference());
  EXPECT_EQ(v->config.range_bytes, 100 * kMiB);
}

TEST(AlteredAddress, OfAnAllocIsFoundAtItsEvent) {
  EXPECT_EQ(first_difference(altered(4)), 4u);
  EXPECT_EQ(first_difference(altered(5)), 5u);
}

TEST(AlteredAddress, OfAnAllocIsOneDifference) {
  const Snapshot snapshot = altered(4);
  EXPECT_EQ(replay_of(snapshot)->replay->differences(), 1);
}

TEST(AlteredAddress, OfACompletionIsFound) {
  EXPECT_EQ(first_difference(altered(3)), 3u);
  EXPECT_EQ(first_difference(altered(3, int64_t{1} << 40)), 3u);
}

TEST(AlteredAddress, OfTheSegmentIsFoundAtItsEvent) {
  for (const int64_t by : {int64_t{512}, 2 * kMiB, 64 * kMiB, int64_t{1} << 40}) {
    EXPECT_EQ(first_difference(altered(0, by)), 0u) << by;
  }
}

TEST(ExactReplay, PeakOfTheStartIsBeforeTheFirstEvent) {
  SnapshotBuilder b;
  b.free(kA, 20 * kMiB).segment(kA, {{.size = 20 * kMiB}});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_EQ(v->replay->peak_requested().bytes, 20 * kMiB);
  EXPECT_EQ(v->replay->peak_requested().event, kNoEvent);
}

TEST(ExactReplay, FreeOutsideAllSegmentsIsADifference) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 4 * kMiB).free(kB, 5 * kMiB);
  b.segment(kA, {live_block(4 * kMiB), {.size = 16 * kMiB}});
  EXPECT_EQ(first_difference(b.build()), 2u);
}

TEST(AlteredAddress, OfTheSegmentBehindItIsFound) {
  const Snapshot snapshot = altered(0, 64 * kMiB);
  EXPECT_FALSE(replay_of(snapshot)->exact());
}

TEST(AlteredAddress, OfAFreeIsFound) {
  const Snapshot snapshot = altered(2);
  EXPECT_FALSE(replay_of(snapshot)->exact());
}

TEST(AlteredSize, OfASegmentIsFoundAtItsEvent) {
  Snapshot snapshot = two_blocks().build();
  snapshot.traces[0].size.set(0, 22 * kMiB);
  EXPECT_EQ(first_difference(snapshot), 0u);
}

TEST(MissingEvent, OfASegmentIsFoundAtTheAllocThatNeededIt) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).alloc(kB, 20 * kMiB);
  b.segment(kA, {live_block(20 * kMiB)});
  EXPECT_EQ(first_difference(b.build()), 2u);
}

TEST(FinalState, WrongBlockSizeIsFound) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).segment(kA, {live_block(6 * kMiB), {.size = 14 * kMiB}});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_EQ(v->replay->differences(), 0);
  EXPECT_FALSE(v->final_state_equal);
}

TEST(FinalState, WrongRequestedSizeOfALiveBlockIsFound) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).segment(kA, {live_block(5 * kMiB, 99), {.size = 15 * kMiB}});
  const Snapshot snapshot = b.build();
  EXPECT_FALSE(replay_of(snapshot)->final_state_equal);
}

TEST(FinalState, IsNotCheckedWhereTheFileWasCut) {
  Snapshot snapshot = two_blocks().build();
  snapshot.complete = false;
  EXPECT_FALSE(replay_of(snapshot)->final_state_checked);
}

// --- events that were cut -------------------------------------------------------------------------------------------

Snapshot cut_behind(SnapshotBuilder builder) {
  Snapshot snapshot = builder.build();
  snapshot.complete = false;
  snapshot.settings.reset();
  return snapshot;
}

// Behind the last call a segment was obtained, for a request that may be cut off.
SnapshotBuilder obtains_at_the_end() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment_alloc(kB, 30 * kMiB);
  b.segment(kA, {live_block(20 * kMiB)}).segment(kB, {live_block(30 * kMiB)});
  return b;
}

TEST(CutEvents, LeaveTheCallThatIsCutOffUncompared) {
  const Snapshot snapshot = cut_behind(obtains_at_the_end());
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->counts().driver_total, 1);
  EXPECT_EQ(v->replay->peak_reserved().bytes, 50 * kMiB);
}

TEST(CutEvents, LeaveReleasesUncomparedThatNeedNotBeAll) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);
  b.free(kA, 20 * kMiB).free(kB, 20 * kMiB).segment_free(kA, 20 * kMiB).segment(kB, {{.size = 20 * kMiB}});
  const Snapshot snapshot = cut_behind(std::move(b));
  EXPECT_TRUE(replay_of(snapshot)->exact());
}

TEST(CutEvents, OfALaterDeviceLeaveTheEarlierOnesWhole) {
  Snapshot snapshot = cut_behind(obtains_at_the_end());
  snapshot.traces.push_back(snapshot.traces[0]);
  EXPECT_FALSE(replay_of(snapshot)->exact());
}

TEST(WholeEvents, EndWithNothingThatNobodyAskedFor) { EXPECT_EQ(first_difference(obtains_at_the_end().build()), 2u); }

// --- whose release is it ---------------------------------------------------------------------------------------------

// A segment is freed, then another one is obtained for a larger request.
SnapshotBuilder release_before_an_alloc() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.segment_free(kA, 20 * kMiB).segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB);
  b.segment(kB, {live_block(30 * kMiB)});
  return b;
}

TEST(Releases, InFrontOfAnAllocAreACallWhereNothingForcesThem) {
  const Snapshot snapshot = release_before_an_alloc().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 1024 * kMiB);
  EXPECT_TRUE(v->exact());
  ASSERT_EQ(v->replay->explicit_releases().size(), 1u);
  EXPECT_EQ(v->replay->explicit_releases()[0].event, 6u);
  EXPECT_EQ(v->replay->allocator().stats().num_alloc_retries, 0);
}

TEST(Releases, InFrontOfAnAllocAreItsOwnWhereTheLimitRefusesIt) {
  const Snapshot snapshot = release_before_an_alloc().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 40 * kMiB);
  EXPECT_TRUE(v->exact());
  EXPECT_TRUE(v->replay->explicit_releases().empty());
  EXPECT_EQ(v->replay->own_release_bursts(), 1);
  EXPECT_EQ(v->replay->allocator().stats().num_alloc_retries, 1);
}

TEST(Releases, WhoseStackShowsEmptyCacheAreACall) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.called_from("empty_cache").segment_free(kA, 20 * kMiB).called_from_nowhere();
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB).segment(kB, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 40 * kMiB);
  EXPECT_EQ(v->replay->explicit_releases().size(), 1u);
  EXPECT_EQ(v->replay->unexplained_releases(), 0);
}

TEST(Releases, InFrontOfAFreeAreACall) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);
  b.free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB).free(kB, 20 * kMiB).segment(kB, {{.size = 20 * kMiB}});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->explicit_releases().size(), 1u);
}

TEST(Releases, AtTheVeryEndAreACall) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB);
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->explicit_releases().size(), 1u);
}

TEST(Releases, OfAPrivatePoolsSegmentNameThatPool) {
  SnapshotBuilder b;
  b.pools_recorded(kUserPool).segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.segment_free(kA, 20 * kMiB);
  b.pools_recorded().segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB).segment(kB, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  ASSERT_EQ(v->replay->explicit_releases().size(), 1u);
  const ExplicitRelease& release = v->replay->explicit_releases()[0];
  EXPECT_FALSE(release.everything);
  ASSERT_EQ(release.pools.size(), 1u);
  EXPECT_EQ(v->timeline.pools[release.pools[0]], kUserPool);
}

TEST(Releases, ThatTheRecordingDoesNotHaveHintAtALimitTooLow) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 40 * kMiB);
  ASSERT_TRUE(v->replay->first_difference().has_value());
  EXPECT_EQ(v->replay->first_difference()->hint, LimitHint::too_low);
}

// --- oom entries
// -------------------------------------------------------------------------------------------------------

SnapshotBuilder refused_at_50() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).oom(30 * kMiB).segment(kA, {live_block(20 * kMiB)});
  return b;
}

// The refused request's own full release waits for the block and finds no whole segment; torch does not search again.
TEST(ExactReplay, CompletionsInFrontOfAnOomMayBeOfItsOwnRelease) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 9 * kMiB).alloc(kA + 9 * kMiB, 9 * kMiB);
  b.free_requested(kA + 9 * kMiB, 9 * kMiB).segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);
  b.free_completed(kA + 9 * kMiB, 9 * kMiB).oom(9 * kMiB);
  b.segment(kA, {live_block(9 * kMiB), {.size = 11 * kMiB}}).segment(kB, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  EXPECT_EQ(first_difference(snapshot), kNoEvent);
}

TEST(ExactReplay, LimitThatWouldHaveAllowedTheRefusedRequestIsADifference) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).oom(30 * kMiB).segment(kA, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  EXPECT_EQ(first_difference(snapshot, 49 * kMiB), kNoEvent);
  EXPECT_EQ(first_difference(snapshot, 50 * kMiB), 2u);
}

TEST(OomEntry, CountsAsADriverEvent) {
  const Snapshot snapshot = refused_at_50().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 40 * kMiB);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->counts().driver_total, 2);
  EXPECT_EQ(v->replay->counts().driver_exact, 2);
  EXPECT_EQ(v->replay->allocator().stats().num_ooms, 1);
}

TEST(OomEntry, WhereCachedMemoryWouldServeIsADifference) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).oom(15 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 20 * kMiB);
  ASSERT_TRUE(v->replay->first_difference().has_value());
  EXPECT_EQ(v->replay->first_difference()->event, 4u);
  EXPECT_EQ(v->replay->first_difference()->hint, LimitHint::too_high);
}

TEST(OomEntry, ReleasesInFrontOfItAreItsOwn) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);
  b.free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB).oom(50 * kMiB).segment(kB, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 60 * kMiB);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->replay->own_release_bursts(), 1);
}

TEST(OomEntry, BehindAPrivatePoolsAllocIsThatPools) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB).oom(30 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {live_block(20 * kMiB)}, {.pool = kUserPool});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 60 * kMiB);
  EXPECT_TRUE(v->exact());  // as a request of the default pool it would have freed the first segment
  EXPECT_EQ(v->replay->allocator().stats().num_alloc_retries, 0);
}

TEST(OomEntry, WithoutTheReleaseThatItCouldHaveMadeIsAPrivatePools) {
  SnapshotBuilder b;
  b.segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).oom(30 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {live_block(20 * kMiB)}, {.pool = kUserPool});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 60 * kMiB);
  EXPECT_TRUE(v->exact());  // although the allocation before it was in the default pool
  EXPECT_EQ(v->replay->allocator().stats().num_alloc_retries, 0);
}

TEST(OwnSegmentAllocator, ShowsWhereAPoolObtainsSegmentsAlthoughExpandableOnesAreOn) {
  SnapshotBuilder b;
  b.conf("expandable_segments:True").pools_recorded(kUserPool);
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 4 * kMiB).alloc(kA + 4 * kMiB, 4 * kMiB);
  b.segment(kA, {live_block(4 * kMiB), live_block(4 * kMiB), {.size = 12 * kMiB}}, {.pool = kUserPool});
  const Snapshot snapshot = b.build();
  EXPECT_TRUE(replay_of(snapshot)->exact());
}

// --- forced addresses
// ----------------------------------------------------------------------------------------------------

TEST(ForcedAddress, IsTakenAsRecorded) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.alloc(kA, 8 * kMiB).alloc(kA + 8 * kMiB, 4 * kMiB).free(kA, 8 * kMiB);
  b.segment(kA, {{.size = 8 * kMiB}, live_block(4 * kMiB), {.size = 8 * kMiB}});
  Snapshot snapshot = b.build();
  EXPECT_TRUE(replay_of(snapshot)->exact());
}

// --- limits
// --------------------------------------------------------------------------------------------------------------

TEST(InferredLimit, LiesBetweenTheAllowedAndTheRefused) {
  const Snapshot snapshot = refused_at_50().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  ASSERT_TRUE(v->limit.has_value());
  EXPECT_EQ(v->limit->low_bytes, 20 * kMiB);
  EXPECT_EQ(v->limit->high_bytes, 50 * kMiB - 1);
  EXPECT_TRUE(v->exact());
}

TEST(InferredLimit, IsNoneWhereNothingWasRefused) {
  const Snapshot snapshot = two_blocks().build();
  EXPECT_FALSE(replay_of(snapshot)->limit.has_value());
}

TEST(InferredLimit, IsNoneWhereTheCardWasFull) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).oom(30 * kMiB, 10 * kMiB).segment(kA, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_FALSE(v->limit.has_value());
  EXPECT_EQ(v->refused_by_driver, 1);
  EXPECT_TRUE(v->exact());
}

// Nothing was refused in sight, but a limit of 30 MiB explains why 20 MiB were released before 30 were obtained.
TEST(InferredLimit, IsTakenWhereItExplainsEveryRelease) {
  const Snapshot snapshot = release_before_an_alloc().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_TRUE(v->exact());
  ASSERT_TRUE(v->limit.has_value());
  EXPECT_EQ(v->limit->low_bytes, 30 * kMiB);
  EXPECT_EQ(v->limit->high_bytes, 50 * kMiB - 1);
}

// The program called empty_cache too, and release_available left the small segment.
TEST(InferredLimit, IsTakenWhereOnlyItReplaysAlthoughThereWereCalls) {
  SnapshotBuilder b;
  b.conf("max_split_size_mb:64");
  b.segment_alloc(kB, 12 * kMiB).alloc(kB, 12 * kMiB);
  b.segment_alloc(kC, 100 * kMiB).alloc(kC, 100 * kMiB).free(kC, 100 * kMiB);
  b.segment_free(kC, 100 * kMiB).free(kB, 12 * kMiB);
  b.segment_alloc(kA, 200 * kMiB).alloc(kA, 200 * kMiB).free(kA, 200 * kMiB);
  b.segment_free(kA, 200 * kMiB).segment_alloc(kC, 100 * kMiB).alloc(kC, 100 * kMiB);
  b.segment(kB, {{.size = 12 * kMiB}});
  b.segment(kC, {live_block(100 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_FALSE(v->replay->first_difference());
  EXPECT_EQ(v->replay->own_release_bursts(), 1);
}

TEST(InferredLimit, IsTheGivenOneWhereItIsKnown) {
  const Snapshot snapshot = refused_at_50().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot, 45 * kMiB);
  ASSERT_TRUE(v->limit.has_value());
  EXPECT_EQ(v->limit->low_bytes, 45 * kMiB);
  EXPECT_EQ(v->limit->high_bytes, 45 * kMiB);
}

// --- rules and devices
// ---------------------------------------------------------------------------------------------------

// Equal blocks in two segments: the older one, at the higher address, is taken.
SnapshotBuilder oldest_segment_wins() {
  SnapshotBuilder b;
  b.segment_alloc(kC, 20 * kMiB).alloc(kC, 20 * kMiB).segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB);
  b.free(kC, 20 * kMiB).free(kA, 20 * kMiB).alloc(kC, 20 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kC, {live_block(20 * kMiB)});
  return b;
}

TEST(Rules, AreFoundByTrying) {
  const Snapshot snapshot = oldest_segment_wins().build();
  const std::unique_ptr<Verification> v = verify(snapshot, 0);
  EXPECT_TRUE(v->exact());
  EXPECT_EQ(v->config.rules.name, "torch-2.13");
}

TEST(Rules, ThatAreGivenAreNotReplaced) {
  const Snapshot snapshot = oldest_segment_wins().build();
  const std::unique_ptr<Verification> v = replay_of(snapshot);
  EXPECT_FALSE(v->exact());
  EXPECT_EQ(v->config.rules.name, "torch-2.11");
}

TEST(Devices, OfOneFileReplayOnTheirOwn) {
  SnapshotBuilder b = two_blocks();
  b.device(1).segment_alloc(kA, 30 * kMiB).alloc(kA, 30 * kMiB).segment(kA, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  ASSERT_EQ(devices_of(snapshot).size(), 2u);
  for (int32_t device : devices_of(snapshot)) EXPECT_TRUE(verify(snapshot, device)->exact()) << device;
}

}  // namespace
}  // namespace oomscope
