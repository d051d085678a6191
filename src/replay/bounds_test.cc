#include "replay/bounds.h"

#include <gtest/gtest.h>

#include <vector>

namespace oomscope {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(FloorBytes, NothingNeedsNothing) {
  const Result<Floor> floor = floor_bytes({});
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 0);
}

TEST(FloorBytes, FreesComeBeforeAllocationsOfTheSameTime) {
  const std::vector<Lifetime> lifetimes = {{300, 0, 3, 0}, {200, 1, 2, 0}, {250, 2, 4, 0}};
  const Result<Floor> floor = floor_bytes(lifetimes);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 550);
  EXPECT_EQ(floor->at, 2u);
}

TEST(FloorBytes, ReportsTheFirstTimeOfThePeak) {
  const std::vector<Lifetime> lifetimes = {{100, 5, 6, 0}, {100, 9, 10, 0}};
  const Result<Floor> floor = floor_bytes(lifetimes);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->at, 5u);
}

TEST(FloorBytes, EmptyRangesAreNeverLive) {
  const std::vector<Lifetime> lifetimes = {{100, 5, 5, 0}};
  const Result<Floor> floor = floor_bytes(lifetimes);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 0);
}

TEST(FloorBytes, SparseTimesCostNoArray) {
  const std::vector<Lifetime> lifetimes = {{100, 1, 4'000'000'000, 0}, {50, 3'000'000'000, 3'000'000'001, 0}};
  const Result<Floor> floor = floor_bytes(lifetimes);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 150);
  EXPECT_EQ(floor->at, 3'000'000'000u);
}

TEST(FloorBytes, SumsBeyond63BitsAreAnError) {
  const std::vector<Lifetime> lifetimes(8, {int64_t{1} << 60, 0, 1, 0});
  const Result<Floor> floor = floor_bytes(lifetimes);
  ASSERT_FALSE(floor);
  EXPECT_EQ(floor.error().code, "live-bytes-overflow");
}

TEST(FloorBytes, ReversedRangesAreAnError) {
  const std::vector<Lifetime> lifetimes = {{100, 0, 1, 0}, {100, 6, 5, 0}};
  const Result<Floor> floor = floor_bytes(lifetimes);
  ASSERT_FALSE(floor);
  EXPECT_EQ(floor.error().code, "lifetime-invalid");
  EXPECT_EQ(floor.error().where, "error.at-lifetime");
}

TEST(PageFloorBytes, OneGroupIsTheFloorRoundedUp) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}, {kMiB, 1, 3, 0}};
  const std::vector<int64_t> pages = {2 * kMiB};
  const Result<Floor> floor = page_floor_bytes(lifetimes, pages);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 2 * kMiB);
  EXPECT_EQ(floor->at, 0u);
}

TEST(PageFloorBytes, GroupsShareNoPage) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}, {3 * kMiB, 1, 3, 1}};
  const std::vector<int64_t> pages = {2 * kMiB, 20 * kMiB};
  const Result<Floor> floor = page_floor_bytes(lifetimes, pages);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 22 * kMiB);
  EXPECT_EQ(floor->at, 1u);
}

TEST(PageFloorBytes, GroupsThatAreNeverLiveTogetherDoNotAddUp) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 1, 0}, {512, 1, 2, 1}, {512, 1, 1, 0}};
  const std::vector<int64_t> pages = {2 * kMiB, 2 * kMiB};
  const Result<Floor> floor = page_floor_bytes(lifetimes, pages);
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->bytes, 2 * kMiB);
}

TEST(PageFloorBytes, AGroupWithoutAPageSizeIsAnError) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 1, 3}};
  const std::vector<int64_t> pages = {2 * kMiB};
  const Result<Floor> floor = page_floor_bytes(lifetimes, pages);
  ASSERT_FALSE(floor);
  EXPECT_EQ(floor.error().code, "page-size-missing");
  EXPECT_EQ(floor.error().where, "error.at-group");
}

}  // namespace
}  // namespace oomscope
