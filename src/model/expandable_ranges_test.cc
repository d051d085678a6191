#include "model/expandable_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLargePage = 20 * kMiB;
constexpr uint64_t kA = 0x300000000;
constexpr uint64_t kB = 0x2a00000000;

// In the order of their begins.
std::vector<RangeLife> lives_of(SnapshotBuilder& builder) {
  const Snapshot snapshot = builder.build();
  const Timeline timeline = build_timeline(snapshot, 0, {.round = [](int64_t bytes) { return bytes; }});
  std::vector<RangeLife> lives = range_lives(timeline, kLargePage);
  std::sort(lives.begin(), lives.end(), [](const RangeLife& a, const RangeLife& b) { return a.from < b.from; });
  return lives;
}

TEST(RangeLives, EndWhereNothingIsMappedAnyMore) {
  SnapshotBuilder b;
  b.segment_map(kA, kLargePage).segment_map(kA + 20 * kMiB, kLargePage).segment_unmap(kA, kLargePage);
  b.segment_unmap(kA + 20 * kMiB, kLargePage).segment_map(kA, kLargePage);
  b.segment(kA, {{.size = kLargePage}}, {.expandable = true, .pool = {0, 7}});
  const std::vector<RangeLife> lives = lives_of(b);
  ASSERT_EQ(lives.size(), 2U);
  EXPECT_EQ(lives[0].from, 0U);
  EXPECT_EQ(lives[0].to, 3U);
  EXPECT_FALSE(lives[0].pool.has_value());
  EXPECT_EQ(lives[1].from, 4U);
  EXPECT_EQ(lives[1].to, kNoEvent);
  EXPECT_EQ(lives[1].pool, (PoolId{0, 7}));
  EXPECT_EQ(lives[0].address, kA);
  EXPECT_EQ(lives[0].size, 2 * kLargePage);
}

TEST(RangeLives, ReachBackToTheStart) {
  SnapshotBuilder b;
  b.alloc(kA, 512).segment_map(kA + 2 * kMiB, 2 * kMiB).segment_unmap(kA, 4 * kMiB);
  const std::vector<RangeLife> lives = lives_of(b);
  ASSERT_EQ(lives.size(), 1U);
  EXPECT_EQ(lives[0].from, 0U);
  EXPECT_EQ(lives[0].to, 2U);
  EXPECT_TRUE(lives[0].is_small);
}

TEST(RangeLives, AreToldApartByDistance) {
  SnapshotBuilder b;
  b.stream(5).segment_map(kA, 2 * kMiB).stream(6).segment_map(kB, kLargePage);
  b.segment_unmap(kB, kLargePage).stream(5).segment_unmap(kA, 2 * kMiB);
  const std::vector<RangeLife> lives = lives_of(b);
  ASSERT_EQ(lives.size(), 2U);
  EXPECT_EQ(lives[0].stream, StreamId{5});
  EXPECT_TRUE(lives[0].is_small);
  EXPECT_EQ(lives[1].stream, StreamId{6});
  EXPECT_FALSE(lives[1].is_small);
}

TEST(RangeLives, OfSegmentsOfTwoPoolsAreLeftOut) {
  SnapshotBuilder b;
  b.alloc(kB, 512);
  b.segment(kA, {{.size = kLargePage}}, {.expandable = true, .pool = {0, 7}});
  b.segment(kA + 40 * kMiB, {{.size = kLargePage}}, {.expandable = true, .pool = {0, 8}});
  EXPECT_TRUE(lives_of(b).empty());
}

// More is mapped than was ever unmapped, or there: no life comes of it, and nothing runs wild.
TEST(RangeLives, OfADamagedRecordingAreThoseThatShow) {
  SnapshotBuilder b;
  b.segment_map(kA, kLargePage).segment_map(kA, kLargePage).segment_map(kA, kLargePage).alloc(kA, 512);
  EXPECT_TRUE(lives_of(b).empty());
}

}  // namespace
}  // namespace oomscope
