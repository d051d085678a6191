#include "plan/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "model/structure.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;

// One block of 20 MiB that no measure knows of.
class AdviceTest : public testing::Test {
 protected:
  AdviceTest() {
    SnapshotBuilder b;
    b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB);
    snapshot_ = b.build();
    verification_ = verify(snapshot_, 0, {.limit_bytes = {}, .rules = default_rule_set()});
    structure_ = find_structure(verification_->timeline);
    job_ = make_job(*verification_, structure_);
  }

  [[nodiscard]] static WhatIf under(std::optional<int64_t> cap_bytes) {
    return {.rules = default_rule_set(), .settings = {}, .cap_bytes = cap_bytes};
  }

  Snapshot snapshot_;
  std::unique_ptr<Verification> verification_;
  Structure structure_;
  Job job_;
};

TEST_F(AdviceTest, WhatARecordingCannotCarryIsRefusedWithTheReason) {
  const std::vector<MeasureOutcome> outcomes = evaluate_measures(job_, under({}), {}, 1);
  ASSERT_FALSE(outcomes.empty());
  const auto accumulation = std::find_if(outcomes.begin(), outcomes.end(),
                                         [](const MeasureOutcome& o) { return o.measure.id == "accumulate-2"; });
  ASSERT_NE(accumulation, outcomes.end());
  EXPECT_EQ(accumulation->refused, "no-backward");
}

TEST_F(AdviceTest, ABatchOfFewSamplesIsNotDividedFurther) {
  const std::vector<MeasureOutcome> outcomes = evaluate_measures(job_, under({}), {.ranks = {}, .batch = 2}, 1);
  const auto accumulation = std::find_if(outcomes.begin(), outcomes.end(),
                                         [](const MeasureOutcome& o) { return o.measure.id == "accumulate-4"; });
  ASSERT_NE(accumulation, outcomes.end());
  EXPECT_EQ(accumulation->refused, "batch-too-small");
}

TEST_F(AdviceTest, WithoutACapNoSetsAreSought) {
  const std::vector<MeasureOutcome> alone = evaluate_measures(job_, under({}), {}, 1);
  EXPECT_EQ(find_sets(job_, under({}), alone, {""}, {}, 1).combinations, 0);
}

TEST_F(AdviceTest, WhatFitsInNothingHasNoSet) {
  const WhatIf question = under(4 * kMiB);
  const std::vector<MeasureOutcome> alone = evaluate_measures(job_, question, {}, 1);
  const SetSearch search = find_sets(job_, question, alone, {""}, {}, 1);
  EXPECT_TRUE(search.fitting.empty());
}

}  // namespace
}  // namespace oomscope
