// A weight of 15 MiB and an activation of 20 MiB a sample: a run at N reserves 16 + 20 N MiB.
#include "plan/fit.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kWeight = 0x7f0000000000;
constexpr uint64_t kActivation = 0x7f0040000000;

class FitTest : public testing::Test {
 protected:
  FitTest() {
    for (int64_t batch : {1, 2}) {
      SnapshotBuilder b;
      b.called_from("make");
      b.segment_alloc(kWeight, 16 * kMiB).alloc(kWeight, 15 * kMiB);
      b.called_from("forward");
      b.segment_alloc(kActivation, batch * 20 * kMiB).alloc(kActivation, batch * 20 * kMiB);
      snapshots_.push_back(b.build());
    }
    std::vector<ScalingInput> inputs;
    for (const Snapshot& snapshot : snapshots_) {
      verifications_.push_back(verify(snapshot, 0, {.limit_bytes = {}, .rules = default_rule_set()}));
      inputs.push_back({.verification = verifications_.back().get(), .path = "b" + std::to_string(inputs.size() + 1)});
    }
    model_ = *scale(inputs, std::vector<int64_t>{1, 2});
  }

  [[nodiscard]] static WhatIf under(int64_t cap_bytes) {
    return {.rules = default_rule_set(), .settings = {}, .cap_bytes = cap_bytes};
  }

  [[nodiscard]] Fit fit(std::optional<int64_t> cap_bytes, std::optional<int64_t> at = {}) const {
    return find_fit(model_, {.rules = default_rule_set(),
                             .settings = {},
                             .cap_bytes = cap_bytes,
                             .at = at,
                             .threads = 1,
                             .progress = [](size_t, size_t) {}});
  }

  std::vector<Snapshot> snapshots_;
  std::vector<std::unique_ptr<Verification>> verifications_;
  ScalingModel model_;
};

TEST_F(FitTest, TheLargestIsTheLastThatReplaysUnderTheCap) {
  const Fit found = fit(200 * kMiB);
  EXPECT_EQ(found.largest, 9);
  EXPECT_EQ(found.largest_maybe, 10);
}

TEST_F(FitTest, NothingFitsInLessThanTheWeights) { EXPECT_FALSE(fit(10 * kMiB).largest); }

TEST_F(FitTest, WithoutACapThereIsNoLargest) {
  const Fit found = fit({}, 8);
  EXPECT_FALSE(found.largest);
  const auto point =
      std::find_if(found.points.begin(), found.points.end(), [](const FitPoint& p) { return p.value == 8; });
  ASSERT_NE(point, found.points.end());
  EXPECT_EQ(point->outcome.main.peak_reserved, 176 * kMiB);
  EXPECT_FALSE(point->fits);
}

TEST_F(FitTest, PointsAreInOrderAndRecordedOnesAreMarked) {
  const Fit found = fit(200 * kMiB, 5);
  for (size_t i = 1; i < found.points.size(); ++i) EXPECT_LT(found.points[i - 1].value, found.points[i].value);
  for (const FitPoint& point : found.points) EXPECT_EQ(point.recorded, point.value <= 2) << point.value;
}

TEST_F(FitTest, WhatRequestsMayBeOffByNarrowsBothAnswers) {
  const RequestStream requests = run_at(model_, 8);  // 176 MiB
  EXPECT_EQ(fits_in(requests, under(180 * kMiB)), Fits::yes);
  EXPECT_EQ(fits_in(requests, under(180 * kMiB), 0.1), Fits::unknown);
  EXPECT_EQ(fits_in(requests, under(300 * kMiB), 0.1), Fits::yes);
  EXPECT_EQ(fits_in(requests, under(100 * kMiB), 0.1), Fits::no);
}

TEST(Fits, HaveNames) { EXPECT_EQ(name_of(Fits::unknown), "unknown"); }

}  // namespace
}  // namespace oomscope
