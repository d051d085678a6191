// What two halves give is what one replay gives; where they cannot be told to, they say nothing.
#include "replay/replay_in_two.h"

#include <gtest/gtest.h>

#include "replay/verify.h"
#include "support/recordings.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;

void expect_same(const Timeline& timeline, const ExactReplay& halves, const Verification& whole) {
  const ExactReplay& replay = *whole.replay;
  EXPECT_EQ(halves.position(), replay.position());
  EXPECT_EQ(halves.counts().alloc_total, replay.counts().alloc_total);
  EXPECT_EQ(halves.counts().alloc_exact, replay.counts().alloc_exact);
  EXPECT_EQ(halves.counts().driver_total, replay.counts().driver_total);
  EXPECT_EQ(halves.counts().driver_exact, replay.counts().driver_exact);
  EXPECT_EQ(halves.explicit_releases().size(), replay.explicit_releases().size());
  EXPECT_EQ(halves.unexplained_releases(), replay.unexplained_releases());
  EXPECT_EQ(halves.from_the_beginning(), replay.from_the_beginning());
  const auto expect_peak = [](const Peak& peak, const Peak& expected) {
    EXPECT_EQ(peak.bytes, expected.bytes);
    EXPECT_EQ(peak.event, expected.event);
  };
  expect_peak(halves.peak_allocated(), replay.peak_allocated());
  expect_peak(halves.peak_reserved(), replay.peak_reserved());
  expect_peak(halves.peak_requested(), replay.peak_requested());
  ASSERT_EQ(timeline.allocations.size(), whole.timeline.allocations.size());
  for (size_t i = 0; i < timeline.allocations.size(); ++i) {
    ASSERT_EQ(timeline.allocations[i].size, whole.timeline.allocations[i].size) << "allocation " << i;
  }
}

// Whether the recording can be replayed in two; if so, the results are compared.
bool check(const Snapshot& snapshot, size_t least_events = 0) {
  const std::unique_ptr<Verification> whole = verify(snapshot, devices_of(snapshot)[0]);
  const auto round = [&](int64_t size) { return round_size(size, whole->config.settings, whole->config.rules); };
  Timeline timeline = build_timeline(snapshot, whole->timeline.device, {.round = round});
  const std::unique_ptr<ExactReplay> halves = replay_in_two(timeline, whole->config, least_events);
  if (halves == nullptr) return false;
  expect_same(timeline, *halves, *whole);
  return true;
}

TEST(ReplayInTwo, GivesWhatOneReplayGives) {
  int in_two = 0;
  for (const Recording& recording : recordings_below(small_recordings())) {
    SCOPED_TRACE(recording.name);
    const Result<Snapshot> snapshot = read_snapshot_file(recording.path.string());
    if (snapshot && !devices_of(*snapshot).empty()) in_two += check(*snapshot) ? 1 : 0;
  }
  EXPECT_GE(in_two, 5);
}

TEST(ReplayInTwo, ReplaysAMillionEventsInTwo) {
  const std::filesystem::path path = large_recordings() / "h200/big_ring_wrapped/snapshot.pickle.zst";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const Result<Snapshot> snapshot = read_snapshot_file(path.string());
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_TRUE(check(*snapshot, 200'000));
}

// 100 rounds of two blocks. In that of `altered` the first lies elsewhere.
Snapshot rounds(uint32_t altered) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB);
  for (uint32_t i = 0; i < 100; ++i) {
    b.alloc(kA + (i == altered ? 512 : 0), 3 * kMiB).alloc(kA + 3 * kMiB, 4 * kMiB);
    b.free(kA + (i == altered ? 512 : 0), 3 * kMiB).free(kA + 3 * kMiB, 4 * kMiB);
  }
  return b.segment(kA, {{.size = 20 * kMiB}}).build();
}

TEST(ReplayInTwo, SaysNothingWhereAHalfDiffers) {
  EXPECT_TRUE(check(rounds(1000)));
  EXPECT_FALSE(check(rounds(10)));
  EXPECT_FALSE(check(rounds(90)));
}

// What only the dump says cannot be told from what the second half found.
TEST(ReplayInTwo, SaysNothingWhereTheDumpHasOtherPools) {
  Snapshot in_pool = rounds(1000);
  in_pool.segments[0].pool = PoolId{.first = 0, .second = 7};
  EXPECT_FALSE(check(in_pool));
  Snapshot expandable = rounds(1000);
  expandable.segments[0].is_expandable = true;
  EXPECT_FALSE(check(expandable));
}

TEST(ReplayInTwo, SaysNothingOfShortRecordings) { EXPECT_FALSE(check(rounds(1000), 10'000)); }

}  // namespace
}  // namespace oomscope
