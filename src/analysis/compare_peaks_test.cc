#include "analysis/compare_peaks.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

Peaks peaks_of(int64_t allocated, int64_t reserved) {
  return Peaks{.name = "run",
               .command = "train",
               .environment = {{"torch", "2.11.0"}},
               .all = {.name = "all", .allocated_bytes = allocated, .reserved_bytes = reserved},
               .phases = {{.name = "forward", .allocated_bytes = allocated / 2, .reserved_bytes = reserved}},
               .steps = 3};
}

TEST(ComparePeaks, MoreThanTwoPerCentIsARegression) {
  const PeaksComparison comparison =
      compare_peaks(peaks_of(1000 * kMiB, 1000 * kMiB), peaks_of(1019 * kMiB, 1021 * kMiB), {});
  EXPECT_FALSE(comparison.rows[0].is_regression);
  EXPECT_TRUE(comparison.rows[1].is_regression);
  EXPECT_TRUE(comparison.has_regression());
}

TEST(ComparePeaks, LessIsNoRegressionAndSmallRunsMayDifferByPages) {
  EXPECT_FALSE(compare_peaks(peaks_of(100 * kMiB, 200 * kMiB), peaks_of(50 * kMiB, 90 * kMiB), {}).has_regression());
  EXPECT_FALSE(compare_peaks(peaks_of(10 * kMiB, 20 * kMiB), peaks_of(14 * kMiB, 24 * kMiB), {}).has_regression());
}

TEST(ComparePeaks, NamesWhatElseDiffersOnBothSides) {
  const Peaks baseline = peaks_of(kMiB, kMiB);
  Peaks now = baseline;
  now.environment = {{"torch", "2.12.0"}, {"cuda", "13.0"}};
  Peaks older = baseline;
  older.environment.emplace_back("card name", "a card");
  const PeaksComparison comparison = compare_peaks(older, now, {});
  ASSERT_EQ(comparison.environment.size(), 3u);
  EXPECT_EQ(comparison.environment[0].baseline, "2.11.0");
  EXPECT_EQ(comparison.environment[1].baseline, "");
  EXPECT_EQ(comparison.environment[2].now, "");
}

TEST(ComparePeaks, PhasesOfOneSideAreNamed) {
  const Peaks baseline = peaks_of(kMiB, kMiB);
  Peaks now = baseline;
  now.phases[0].name = "validation";
  const PeaksComparison comparison = compare_peaks(baseline, now, {});
  EXPECT_EQ(comparison.only_baseline, std::vector<std::string>{"forward"});
  EXPECT_EQ(comparison.only_now, std::vector<std::string>{"validation"});
  EXPECT_EQ(comparison.rows.size(), 2u);
}

}  // namespace
}  // namespace oomscope
