#include "plan/size_model.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(SizeModel, EqualSizesAreConstant) {
  const SizeModel model = fit_size({{1, 4096}, {2, 4096}}, false);
  EXPECT_EQ(model.rule, SizeRule::constant);
  EXPECT_EQ(model.at(32), 4096);
}

TEST(SizeModel, SizesInTheRatioOfTheValuesAreProportional) {
  const SizeModel model = fit_size({{2, 3000}, {3, 4500}}, false);
  EXPECT_EQ(model.rule, SizeRule::proportional);
  EXPECT_EQ(model.at(8), 12000);
}

TEST(SizeModel, SizesInTheRatioOfTheSquaresAreAttentionMatrices) {
  const SizeModel model = fit_size({{128, 128 * 128 * 12}, {256, 256 * 256 * 12}}, false);
  EXPECT_EQ(model.rule, SizeRule::square);
  EXPECT_EQ(model.at(1024), 1024 * 1024 * 12);
}

TEST(SizeModel, APartThatStaysIsAffine) {
  const SizeModel model = fit_size({{2, 50000 + 2 * 70000}, {4, 50000 + 4 * 70000}}, false);
  EXPECT_EQ(model.rule, SizeRule::affine);
  EXPECT_EQ(model.at(16), 50000 + 16 * 70000);
}

TEST(SizeModel, ASumOfASquareAndALineNeedsOtherSquares) {
  const std::vector<SizePoint> points = {{10, 10 * 500 + 100 * 90}, {20, 20 * 500 + 400 * 90}};
  EXPECT_EQ(fit_size(points, true).at(40), 40 * 500 + 1600 * 90);
  EXPECT_EQ(fit_size(points, false).rule, SizeRule::stepwise);
}

TEST(SizeModel, ASizeThatShrinksIsAnotherKernelsAndGrowsFromThere) {
  const SizeModel model = fit_size({{4, 9000000}, {8, 2000000}}, false);
  EXPECT_EQ(model.rule, SizeRule::stepwise);
  EXPECT_EQ(model.at(16), 4000000);
}

TEST(SizeModel, ASumGrowsAsItsPartsDo) {
  const SizeModel half = fit_size({{1, 100000}, {2, 200000}}, false);
  EXPECT_EQ(sum_of({half, half}, 2.25, 512).at(4), 1800512);
}

TEST(SizeModel, ThreePointsOnALineAreALine) {
  const SizeModel model = fit_size({{1, 150000}, {2, 250000}, {3, 350000}}, false);
  EXPECT_EQ(model.at(10), 1050000);
}

TEST(SizeModel, AStepBetweenTheFirstTwoPointsLeavesTheLastTwo) {
  const SizeModel model = fit_size({{1, 700000}, {2, 200000}, {3, 300000}}, false);
  EXPECT_EQ(model.at(6), 600000);
}

}  // namespace
}  // namespace oomscope
