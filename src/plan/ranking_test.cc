#include "plan/ranking.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

// Two groups with one measure each: one halves backward, the other halves the step.
class RankingTest : public testing::Test {
 protected:
  RankingTest() {
    checkpointing_.id = "checkpointing";
    checkpointing_.time_factor = 1.3;
    fused_.id = "fused";
    fused_.time_factor = 1.0;
    for (std::vector<Choice>& group : choices_) group.push_back({});
    choices_[0].push_back({.measure = &checkpointing_, .factor = {1, 0.5, 1, 1}});
    choices_[1].push_back({.measure = &fused_, .factor = {1, 1, 0.5, 1}});
  }

  [[nodiscard]] Ranking rank(Profile base, double cap, double slack = 1) const {
    return rank_sets({.base = base, .cap = cap, .slack = slack, .overheads = {1}}, choices_);
  }

  Measure checkpointing_;
  Measure fused_;
  Choices choices_;
};

size_t count(const Candidate& candidate) {
  size_t measures = 0;
  for (const Choice* choice : candidate.choices) measures += choice == nullptr ? 0 : 1;
  return measures;
}

TEST_F(RankingTest, SavingsDoNotAddUpWhereTwoInstantsAreAsHigh) {
  const Ranking ranking = rank({50, 100, 100, 10}, 60);
  EXPECT_EQ(ranking.combinations, 4);
  ASSERT_EQ(ranking.best.size(), 1U);
  EXPECT_EQ(count(ranking.best[0]), 2U);
  EXPECT_DOUBLE_EQ(ranking.best[0].estimate, 50);
  EXPECT_DOUBLE_EQ(ranking.best[0].cost, 1.3);
}

TEST_F(RankingTest, TheCheapestStandsFirst) {
  const Ranking ranking = rank({50, 58, 100, 10}, 60);
  ASSERT_FALSE(ranking.best.empty());
  EXPECT_EQ(count(ranking.best[0]), 1U);
  EXPECT_EQ(ranking.best[0].choices[1]->measure, &fused_);
}

TEST_F(RankingTest, WhatIsTooLargeWhateverIsDoneIsLeftOut) { EXPECT_TRUE(rank({90, 100, 100, 10}, 60).best.empty()); }

TEST_F(RankingTest, SlackKeepsWhatIsALittleTooLarge) { EXPECT_FALSE(rank({62, 62, 62, 10}, 60, 1.06).best.empty()); }

TEST_F(RankingTest, ASetThatSurelyFitsWithoutOneOfItsMeasuresIsNoCandidate) {
  const Ranking ranking = rank({10, 20, 20, 10}, 60);
  ASSERT_EQ(ranking.best.size(), 1U);
  EXPECT_EQ(count(ranking.best[0]), 0U);
}

}  // namespace
}  // namespace oomscope
