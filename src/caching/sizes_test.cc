#include "caching/sizes.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

constexpr int64_t kKiB = int64_t{1} << 10;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

AllocatorSettings with_divisions(int64_t divisions) {
  AllocatorSettings settings;
  settings.roundup_power2_divisions.fill(divisions);
  return settings;
}

int64_t rounded(int64_t request, const AllocatorSettings& settings = {}) {
  return round_size(request, settings, default_rule_set());
}

TEST(RoundSize, LessThanOneUnitTakesOneUnit) {
  EXPECT_EQ(rounded(1), 512);
  EXPECT_EQ(rounded(511), 512);
}

TEST(RoundSize, IsTheNextMultipleOf512) {
  EXPECT_EQ(rounded(512), 512);
  EXPECT_EQ(rounded(513), 1024);
  EXPECT_EQ(rounded(5000001), 5000192);
}

TEST(RoundSize, DivisionsRoundToAPartOfThePowerOfTwoBelow) {
  EXPECT_EQ(rounded(5000000, with_divisions(4)), 5242880);
  EXPECT_EQ(rounded(5242880, with_divisions(4)), 5242880);
  EXPECT_EQ(rounded(5242881, with_divisions(4)), 6291456);
}

TEST(RoundSize, DivisionsLeaveAPowerOfTwoAlone) { EXPECT_EQ(rounded(4 * kMiB, with_divisions(4)), 4 * kMiB); }

TEST(RoundSize, DivisionsDoNotApplyUpTo512BytesEach) {
  EXPECT_EQ(rounded(600, with_divisions(4)), 1024);  // 640 if they did
  EXPECT_EQ(rounded(2048, with_divisions(4)), 2048);
}

TEST(RoundSize, DivisionsThatAreNoPowerOfTwoCountAsTheOneBelow) {
  EXPECT_EQ(rounded(5000000, with_divisions(6)), 5242880);
}

TEST(RoundSize, DivisionsWhoseProductWrapsAroundRoundToAPowerOfTwo) {
  EXPECT_EQ(rounded(5000000, with_divisions(int64_t{1} << 62)), 8 * kMiB);
  EXPECT_EQ(rounded(5000000, with_divisions(int64_t{1} << 50)), 5000192);
}

TEST(RoundSize, OneDivisionRoundsTo512SinceTorch24) {
  EXPECT_EQ(round_size(1000, with_divisions(1), *find_rule_set("torch-2.4")), 1024);
}

TEST(RoundSize, OneDivisionLeavesSizesUnroundedUpToTorch21) {
  const RuleSet rules = *find_rule_set("torch-2.1");
  EXPECT_EQ(round_size(1000, with_divisions(1), rules), 1000);
  EXPECT_EQ(round_size(512, with_divisions(1), rules), 512);
  EXPECT_EQ(round_size(100, with_divisions(1), rules), 512);
}

TEST(RoundupIndex, EntryZeroServesAllBelowTwoMiB) {
  EXPECT_EQ(roundup_index(1), 0);
  EXPECT_EQ(roundup_index(kMiB), 0);
  EXPECT_EQ(roundup_index(2 * kMiB - 1), 0);
}

TEST(RoundupIndex, EntryKServesFromItsPowerOfTwoToTheNext) {
  EXPECT_EQ(roundup_index(2 * kMiB), 1);
  EXPECT_EQ(roundup_index(256 * kMiB), 8);
  EXPECT_EQ(roundup_index(512 * kMiB - 1), 8);
  EXPECT_EQ(roundup_index(16 * kGiB), 14);
}

TEST(RoundupIndex, LastEntryServesAllFrom32GiB) {
  EXPECT_EQ(roundup_index(32 * kGiB - 1), 14);
  EXPECT_EQ(roundup_index(32 * kGiB), 15);
  EXPECT_EQ(roundup_index(1024 * kGiB), 15);
}

TEST(RoundSize, TakesTheDivisionsOfTheRequestsOwnInterval) {
  AllocatorSettings settings;
  settings.roundup_power2_divisions[2] = 2;  // 4 to 8 MiB
  EXPECT_EQ(rounded(5 * kMiB, settings), 6 * kMiB);
  EXPECT_EQ(rounded(9 * kMiB, settings), 9 * kMiB);
  EXPECT_EQ(rounded(3 * kMiB, settings), 3 * kMiB);
}

TEST(IsSmall, IncludesOneMiB) {
  EXPECT_TRUE(is_small(kMiB));
  EXPECT_FALSE(is_small(kMiB + 512));
}

TEST(AllocationSize, SmallSizesGetTwoMiB) {
  EXPECT_EQ(allocation_size(512, {}), 2 * kMiB);
  EXPECT_EQ(allocation_size(kMiB, {}), 2 * kMiB);
}

TEST(AllocationSize, MiddleSizesGet20MiB) {
  EXPECT_EQ(allocation_size(kMiB + 512, {}), 20 * kMiB);
  EXPECT_EQ(allocation_size(10 * kMiB - 512, {}), 20 * kMiB);
}

TEST(AllocationSize, From10MiBOnGetsItsOwnSizeInStepsOfTwoMiB) {
  EXPECT_EQ(allocation_size(10 * kMiB, {}), 10 * kMiB);
  EXPECT_EQ(allocation_size(10 * kMiB + 512, {}), 12 * kMiB);
  EXPECT_EQ(allocation_size(100 * kMiB + 100 * kKiB, {}), 102 * kMiB);
}

TEST(AllocationSize, LargeSegmentSizeChangesTheMiddleOnly) {
  const AllocatorSettings settings{.large_segment_size_bytes = 32 * kMiB};
  EXPECT_EQ(allocation_size(5 * kMiB, settings), 32 * kMiB);
  EXPECT_EQ(allocation_size(512, settings), 2 * kMiB);
  EXPECT_EQ(allocation_size(10 * kMiB, settings), 10 * kMiB);
}

}  // namespace
}  // namespace oomscope
