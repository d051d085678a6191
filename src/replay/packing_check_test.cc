#include "replay/packing_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace oomscope {
namespace {

Packing packing_of(int64_t height_bytes, std::vector<int64_t> offsets_bytes) {
  Packing packing;
  packing.height_bytes = height_bytes;
  packing.offsets_bytes = std::move(offsets_bytes);
  return packing;
}

std::string code_of(const Result<Done>& result) { return result ? "none" : result.error().code; }

TEST(CheckPacking, TakesDisjointPlaces) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}, {512, 1, 3, 0}, {512, 2, 3, 0}};
  EXPECT_TRUE(check_packing(lifetimes, packing_of(1024, {0, 512, 0})));
}

TEST(CheckPacking, NamesTheFirstTwoThatOverlap) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 4, 0}, {1024, 1, 3, 0}, {512, 2, 3, 0}};
  const Result<Done> result = check_packing(lifetimes, packing_of(1280, {0, 256, 0}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "packing-wrong");
  EXPECT_EQ(result.error().what, "error.packing.overlap");
  EXPECT_EQ(result.error().values,
            (Values{{"other", "0"}, {"other_range", "[0, 512)"}, {"mine", "1"}, {"mine_range", "[256, 1280)"}}));
  EXPECT_EQ(result.error().where, "event 1");
}

TEST(CheckPacking, SeesTheNeighbourAbove) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 4, 0}, {512, 1, 3, 0}};
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(1024, {512, 256}))), "packing-wrong");
}

TEST(CheckPacking, SeesEqualPlaces) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 4, 0}, {512, 1, 3, 0}};
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(512, {0, 0}))), "packing-wrong");
}

TEST(CheckPacking, TheHeightMustBeExact) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}};
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(511, {0}))), "packing-wrong");
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(513, {0}))), "packing-wrong");
}

TEST(CheckPacking, EveryLifetimeNeedsAnOffset) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}};
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(0, {}))), "packing-wrong");
}

TEST(CheckPacking, OffsetsBelowZeroOrBeyond63BitsAreWrong) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}};
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(0, {-512}))), "packing-wrong");
  EXPECT_EQ(code_of(check_packing(lifetimes, packing_of(512, {INT64_MAX - 100}))), "packing-wrong");
}

TEST(CheckPacking, EmptyLifetimesTakeNoPlace) {
  const std::vector<Lifetime> lifetimes = {{512, 0, 2, 0}, {0, 0, 2, 0}, {512, 1, 1, 0}};
  EXPECT_TRUE(check_packing(lifetimes, packing_of(512, {0, 0, 0})));
}

}  // namespace
}  // namespace oomscope
