// What-if replays of recordings of a few lines.
#include "replay/what_if.h"

#include <gtest/gtest.h>

#include "replay/smallest_cap.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;

RequestStream requests_in(const Snapshot& snapshot, std::optional<int64_t> limit = std::nullopt) {
  return requests_of(*verify(snapshot, devices_of(snapshot)[0], {.limit_bytes = limit, .rules = default_rule_set()}));
}

WhatIf question(const AllocatorSettings& settings = {}, std::optional<int64_t> cap = std::nullopt) {
  return {.rules = default_rule_set(), .settings = settings, .cap_bytes = cap, .policy = AddressPolicy::chunks};
}

// 20 MiB for a while, then 30 MiB.
SnapshotBuilder twenty_then_thirty() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {live_block(30 * kMiB)});
  return b;
}

TEST(WhatIf, SameSettingsGiveTheSamePeaks) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question());
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.peak_reserved, 50 * kMiB);
  EXPECT_EQ(outcome.peak_allocated, 30 * kMiB);
  EXPECT_EQ(outcome.peak_requested, 30 * kMiB);
  EXPECT_EQ(outcome.num_device_alloc, 2);
}

TEST(WhatIf, CurveHoldsTheMostOfEachShareOfRequests) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const RequestStream requests = requests_in(snapshot);
  WhatIf asked = question();
  asked.curve_points = requests.kind.size();
  const Outcome outcome = replay_what_if(requests, asked);
  ASSERT_EQ(outcome.reserved_curve.size(), requests.kind.size());
  EXPECT_EQ(outcome.reserved_curve.front(), 20 * kMiB);
  EXPECT_EQ(outcome.reserved_curve.back(), outcome.peak_reserved);
  EXPECT_EQ(events_of_curve(requests, 1).size(), 1U);
}

TEST(WhatIf, CapForcesARelease) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question({}, 40 * kMiB));
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.num_alloc_retries, 1);
  EXPECT_EQ(outcome.peak_reserved, 30 * kMiB);
}

TEST(WhatIf, CapThatIsTooSmallStopsAtItsRequest) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question({}, 28 * kMiB));
  EXPECT_FALSE(outcome.completed);
  EXPECT_EQ(outcome.stopped_at_event, 5u);
  EXPECT_EQ(outcome.refused_bytes, 30 * kMiB);
  EXPECT_EQ(outcome.num_ooms, 1);
}

// Nobody set a limit, so nothing is collected in view of one: the request itself finds the card full.
TEST(WhatIf, FullCardIsNoReasonToCollectGarbage) {
  const Snapshot snapshot = twenty_then_thirty().build();
  WhatIf asked = question({.garbage_collection_threshold = 0.3}, 60 * kMiB);
  EXPECT_EQ(replay_what_if(requests_in(snapshot), asked).peak_reserved, 30 * kMiB);
  asked.cap_kind = CapKind::card;
  EXPECT_EQ(replay_what_if(requests_in(snapshot), asked).peak_reserved, 50 * kMiB);
  asked.cap_bytes = 40 * kMiB;
  const Outcome full = replay_what_if(requests_in(snapshot), asked);
  EXPECT_TRUE(full.completed);
  EXPECT_EQ(full.num_alloc_retries, 1);
}

// A limit is tested with the segment's size, a card holds whole pages.
TEST(WhatIf, PagesThatACardDoesNotHaveAreNotMapped) {
  const Snapshot snapshot = twenty_then_thirty().build();
  WhatIf asked = question({.expandable_segments = true}, 30 * kMiB);
  const Outcome limited = replay_what_if(requests_in(snapshot), asked);
  EXPECT_TRUE(limited.completed);
  EXPECT_EQ(limited.peak_reserved, 40 * kMiB);
  asked.cap_kind = CapKind::card;
  EXPECT_FALSE(replay_what_if(requests_in(snapshot), asked).completed);
}

TEST(WhatIf, BlockOfTheStartThatIsRefusedHasNoEvent) {
  SnapshotBuilder b;
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB).free(kA, 20 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  const RequestStream requests = requests_in(snapshot);
  const Outcome at_start = replay_what_if(requests, question({}, 10 * kMiB));
  const Outcome later = replay_what_if(requests, question({}, 40 * kMiB));
  EXPECT_EQ(at_start.stopped_at_event, kNoEvent);
  EXPECT_NE(later.stopped_at_event, kNoEvent);
  EXPECT_LT(at_start.stopped_at_request, later.stopped_at_request);
}

TEST(SmallestCap, TriesEveryCapOfAShortRecording) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const SmallestCap found =
      *smallest_cap(requests_in(snapshot), question(), {.threads = 2, .event_budget = 60'000'000, .progress = {}});
  EXPECT_EQ(found.smallest_cap_bytes, 30 * kMiB);
  EXPECT_EQ(found.largest_failing_bytes, 28 * kMiB);
  EXPECT_EQ(found.tried, 50 * kMiB / kCapGrid);
  EXPECT_TRUE(found.monotone);
}

TEST(WhatIf, ExpandableSegmentsReuseTheFreedPages) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question({.expandable_segments = true}));
  EXPECT_EQ(outcome.peak_reserved, 40 * kMiB);
}

TEST(WhatIf, ExplicitReleasesStayWhereTheyWere) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB);
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB).segment(kB, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  const Outcome outcome = replay_what_if(requests_in(snapshot, 1024 * kMiB), question());
  EXPECT_EQ(outcome.peak_reserved, 30 * kMiB);
  EXPECT_EQ(outcome.num_device_free, 1);
}

TEST(WhatIf, OwnReleasesOfTheRecordingAreDropped) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB);
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB).segment(kB, {live_block(30 * kMiB)});
  const Snapshot snapshot = b.build();
  const Outcome outcome = replay_what_if(requests_in(snapshot, 40 * kMiB), question());
  EXPECT_EQ(outcome.peak_reserved, 50 * kMiB);
  EXPECT_EQ(outcome.num_device_free, 0);
}

TEST(WhatIf, HeldFreeStaysPendingAsLongAsRecorded) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free_requested(kA, 20 * kMiB);
  b.segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB).free_completed(kA, 20 * kMiB).alloc(kA, 20 * kMiB);
  b.segment(kA, {live_block(20 * kMiB)}).segment(kB, {live_block(20 * kMiB)});
  const Snapshot snapshot = b.build();
  EXPECT_EQ(replay_what_if(requests_in(snapshot), question()).peak_reserved, 40 * kMiB);
}

// A library asks for 100 MiB of scratch and gives it back at once. `file`: from where.
SnapshotBuilder scratch(const char* file = nullptr, const char* function = "") {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB);
  if (file != nullptr) b.python({{file, 1, function}, {"train.py", 2, "main"}});
  b.segment_alloc(kB, 100 * kMiB).alloc(kB, 100 * kMiB).free(kB, 100 * kMiB).free(kA, 20 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {{.size = 100 * kMiB}});
  return b;
}

TEST(LibraryTry, RefusedScratchIsSkipped) {
  const Snapshot snapshot = scratch().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question({}, 60 * kMiB));
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.library_tries, 1);
  EXPECT_EQ(outcome.num_ooms, 1);
}

TEST(LibraryTry, TemporaryOfAnOptimizerIsNone) {
  const auto completes = [](const char* file, const char* function) {
    const Snapshot snapshot = scratch(file, function).build();
    return replay_what_if(requests_in(snapshot), question({}, 60 * kMiB)).completed;
  };
  EXPECT_FALSE(completes("/v/site-packages/torch/optim/adam.py", "_multi_tensor_adam"));
  EXPECT_FALSE(completes("/v/site-packages/torch/nn/modules/linear.py", "forward"));
  EXPECT_TRUE(completes("/v/site-packages/torch/nn/modules/conv.py", "_conv_forward"));
}

TEST(LibraryTry, BlockThatLivesOnIsNone) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB);
  b.segment_alloc(kB, 100 * kMiB).alloc(kB, 100 * kMiB).free(kA, 20 * kMiB).free(kB, 100 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {{.size = 100 * kMiB}});
  const Snapshot snapshot = b.build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question({}, 60 * kMiB));
  EXPECT_FALSE(outcome.completed);
  EXPECT_EQ(outcome.library_tries, 0);
}

// --- failures of the recording
// ------------------------------------------------------------------------------------------

SnapshotBuilder died_at_50() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).oom(30 * kMiB).segment(kA, {live_block(20 * kMiB)});
  return b;
}

TEST(Failure, ThatTheProgramDiedOfIsTheLast) {
  const Snapshot snapshot = died_at_50().build();
  const RequestStream requests = requests_in(snapshot);
  ASSERT_EQ(requests.failures.size(), 1u);
  EXPECT_TRUE(requests.failures[0].last);
  EXPECT_EQ(requests.failures[0].event, 2u);
}

TEST(Failure, IsServedWithoutACap) {
  const Snapshot snapshot = died_at_50().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question());
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.failure_served, (std::vector<bool>{true}));
  EXPECT_EQ(outcome.peak_reserved, 50 * kMiB);
}

TEST(Failure, ThatTheProgramDiedOfStopsTheReplayToo) {
  const Snapshot snapshot = died_at_50().build();
  const Outcome outcome = replay_what_if(requests_in(snapshot), question({}, 45 * kMiB));
  EXPECT_FALSE(outcome.completed);
  EXPECT_EQ(outcome.stopped_at_event, 2u);
  EXPECT_EQ(outcome.failure_served, (std::vector<bool>{false}));
}

TEST(Failure, ThatTheProgramSurvivedDoesNotStopTheReplay) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).oom(30 * kMiB).free(kA, 20 * kMiB).alloc(kA, 18 * kMiB);
  b.segment(kA, {live_block(18 * kMiB), {.size = 2 * kMiB}});
  const Snapshot snapshot = b.build();
  const RequestStream requests = requests_in(snapshot);
  EXPECT_FALSE(requests.failures[0].last);
  EXPECT_TRUE(replay_what_if(requests, question({}, 45 * kMiB)).completed);
}

TEST(Failure, ThatOnlyCleaningUpFollowedIsTheLast) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 18 * kMiB).oom(30 * kMiB).free(kA, 18 * kMiB).alloc(kA, 2 * kMiB);
  b.segment(kA, {live_block(2 * kMiB), {.size = 18 * kMiB}});
  const Snapshot snapshot = b.build();
  EXPECT_TRUE(requests_in(snapshot).failures[0].last);
}

// --- mid-life
// ------------------------------------------------------------------------------------------------------------

TEST(MidLife, LiveBlocksOfTheStartAreAllocatedAnewFirst) {
  SnapshotBuilder b;
  b.alloc(kA + 5 * kMiB, 4 * kMiB).free(kA, 5 * kMiB);
  b.segment(kA, {{.size = 5 * kMiB}, live_block(4 * kMiB), {.size = 11 * kMiB}});
  const Snapshot snapshot = b.build();
  const RequestStream requests = requests_in(snapshot);
  EXPECT_TRUE(requests.from_mid_life);
  ASSERT_FALSE(requests.kind.empty());
  EXPECT_EQ(requests.kind[0], RequestKind::malloc);
  EXPECT_EQ(requests.size[requests.id[0]], 5 * kMiB);
  const Outcome outcome = replay_what_if(requests, question());
  EXPECT_TRUE(outcome.completed);
  EXPECT_EQ(outcome.peak_requested, 9 * kMiB);
}

// 6 and 13 MiB share a segment of 20, and the 2 that follow need another. 13 and 6 take 14 and 20, where 2 are left.
TEST(MidLife, TheRangeHoldsOtherOrdersOfTheStart) {
  SnapshotBuilder b;
  b.segment_alloc(kB, 20 * kMiB).alloc(kB, 2 * kMiB);
  b.segment(kA, {live_block(6 * kMiB), live_block(13 * kMiB), {.size = kMiB}});
  b.segment(kB, {live_block(2 * kMiB), {.size = 18 * kMiB}});
  const Snapshot snapshot = b.build();
  const RequestStream requests = requests_in(snapshot);
  OutcomeRange range = replay_main(requests, question());
  EXPECT_EQ(range.main.address_ties, 0);
  EXPECT_FALSE(range.looked_for);
  EXPECT_EQ(range.main.peak_reserved, 40 * kMiB);
  look_for_range(requests, question(), range);
  EXPECT_TRUE(range.looked_for);
  EXPECT_EQ(range.peak_reserved_low, 34 * kMiB);
  EXPECT_EQ(range.peak_reserved_high, 40 * kMiB);
  EXPECT_FALSE(replay_range(requests, question({}, 39 * kMiB)).main.completed);
  EXPECT_TRUE(replay_range(requests, question({}, 39 * kMiB)).completed_somewhere);
}

// 6 and 2 MiB leave pieces of 7 and 5 where they lie. Allocated anew they leave 12, so that 8 are served.
TEST(MidLife, AReplayThatServesWhatFailedProvesNothing) {
  SnapshotBuilder b;
  b.oom(8 * kMiB);
  b.segment(kA, {live_block(6 * kMiB), {.size = 7 * kMiB}, live_block(2 * kMiB), {.size = 5 * kMiB}});
  const Snapshot snapshot = b.build();
  const RequestStream requests = requests_in(snapshot);
  ASSERT_TRUE(requests.from_mid_life);
  const Outcome served = replay_what_if(requests, question({}, 20 * kMiB));
  EXPECT_TRUE(served.failure_served.back());
  EXPECT_FALSE(fails_as_recorded(requests, served));
  EXPECT_TRUE(fails_as_recorded(requests, replay_what_if(requests, question({}, 10 * kMiB))));
}

TEST(MidLife, FirstTensorOfTheProcessIsAskedForAgain) {
  SnapshotBuilder b = twenty_then_thirty();
  b.segment(0x7f00c0000000, {{.size = 2 * kMiB, .requested = 4}});
  const Snapshot snapshot = b.build();
  const RequestStream requests = requests_in(snapshot);
  EXPECT_FALSE(requests.from_mid_life);
  EXPECT_EQ(replay_what_if(requests, question()).num_device_alloc, 3);
}

// --- ranges
// ----------------------------------------------------------------------------------------------------------------

TEST(Range, IsOnePointWhereNoTieHangsOnAddresses) {
  const Snapshot snapshot = twenty_then_thirty().build();
  const OutcomeRange range = replay_range(requests_in(snapshot), question());
  EXPECT_EQ(range.main.address_ties, 0);
  EXPECT_EQ(range.peak_reserved_low, 50 * kMiB);
  EXPECT_EQ(range.peak_reserved_high, 50 * kMiB);
  EXPECT_TRUE(range.completed_everywhere);
}

TEST(Range, HoldsTheMainOutcome) {
  SnapshotBuilder b;
  b.segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB).segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB);
  b.free(kA, 20 * kMiB).free(kB, 20 * kMiB).alloc(kA, 5 * kMiB);
  b.segment(kA, {live_block(5 * kMiB), {.size = 15 * kMiB}}).segment(kB, {{.size = 20 * kMiB}});
  const Snapshot snapshot = b.build();
  const OutcomeRange range = replay_range(requests_in(snapshot), question());
  EXPECT_EQ(range.main.address_ties, 1);
  EXPECT_LE(range.peak_reserved_low, range.main.peak_reserved);
  EXPECT_GE(range.peak_reserved_high, range.main.peak_reserved);
}

}  // namespace
}  // namespace oomscope
