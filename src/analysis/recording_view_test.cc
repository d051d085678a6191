#include "analysis/recording_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/show.h"
#include "support/demo_recording.h"
#include "support/recordings.h"

namespace oomscope {
namespace {

// A recording with all that its view refers to while it is made.
struct Viewed {
  explicit Viewed(std::unique_ptr<Snapshot> read) : snapshot(std::move(read)) {
    Result<Diagnosis> found = diagnose(*snapshot, devices_of(*snapshot)[0], {});
    diagnosis = std::make_unique<Diagnosis>(*std::move(found));
    view = view_recording(*snapshot, *diagnosis, find_run_facts(*snapshot, *diagnosis));
  }
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<Diagnosis> diagnosis;
  RecordingView view;
};

const Viewed& demo() {
  static const Viewed viewed(demo_recording());
  return viewed;
}

Viewed viewed(const std::string& file) { return Viewed(read_recording(std::string(OOMSCOPE_TEST_DATA) + file)); }

std::vector<uint32_t> some_events(const RecordingView& view) {
  return {0, view.events / 3, view.events / 2, view.peak_allocated.event, view.events - 1};
}

TEST(RecordingView, LivesSumToWhatShowCounts) {
  for (uint32_t event : some_events(demo().view)) {
    const Result<Shown> shown = show_state(*demo().diagnosis->verification, Moment::event, event, GroupBy::category);
    std::vector<int64_t> by_category(demo().view.categories.size(), 0);
    int64_t active = 0;
    for (const Life& life : demo().view.lives) {
      if (!holds_after(life, event)) continue;
      const LifeKind& kind = demo().view.kinds[life.kind];
      active += kind.size;
      by_category[kind.category] += kind.requested;
    }
    EXPECT_EQ(active, shown->totals.active) << event;
    for (const ShowRow& row : shown->rows) {
      const auto& names = demo().view.categories;
      const auto found = std::find(names.begin(), names.end(), row.key);
      if (found == names.end()) continue;  // the rounding
      EXPECT_EQ(by_category[static_cast<size_t>(found - names.begin())], row.bytes) << row.key << " at " << event;
    }
  }
}

TEST(RecordingView, DriverChangesSumToWhatIsReserved) {
  for (uint32_t event : some_events(demo().view)) {
    const Result<Shown> shown = show_state(*demo().diagnosis->verification, Moment::event, event, GroupBy::size);
    int64_t reserved = 0;
    for (const DriverChange& change : demo().view.driver) {
      if (change.event == kNever || change.event <= event) reserved += change.is_gain ? change.size : -change.size;
    }
    EXPECT_EQ(reserved, shown->totals.reserved) << event;
  }
}

TEST(LayerSeries, ShowsThePeakAtEveryWidthAndAddsUp) {
  const RecordingView& view = demo().view;
  for (size_t columns : {1U, 7U, 240U, 3000U, 1000000U}) {
    for (Layers by : {Layers::category, Layers::site}) {
      const LayeredSeries series = layer_series(view, by, columns);
      int64_t most = 0;
      for (size_t column = 0; column < series.least.size(); ++column) {
        int64_t sum = 0;
        for (const std::vector<int64_t>& layer : series.layers) sum += layer[column];
        EXPECT_LE(series.least[column], sum);
        most = std::max(most, sum);
      }
      EXPECT_EQ(most, view.peak_allocated.bytes) << columns;
      EXPECT_EQ(*std::max_element(series.reserved.begin(), series.reserved.end()), view.peak_reserved.bytes);
    }
  }
}

TEST(Steps, CoverTheRecordingAndHoldItsPeak) {
  const std::vector<StepUse>& steps = demo().view.steps.steps;
  ASSERT_FALSE(steps.empty());
  uint32_t next = 0;
  int64_t most = 0;
  for (const StepUse& step : steps) {
    EXPECT_EQ(step.begin, next);
    next = step.end;
    most = std::max(most, step.peak_allocated);
  }
  EXPECT_EQ(next, demo().view.events);
  EXPECT_EQ(most, demo().view.peak_allocated.bytes);
}

TEST(Steps, FirstBadOneIsTheFirstThatKeepsMore) {
  const Viewed leak = viewed("/causes/tensors_kept_lm.pickle.zst");
  ASSERT_TRUE(leak.view.steps.first_bad.has_value());
  const std::vector<StepUse>& steps = leak.view.steps.steps;
  const size_t bad = *leak.view.steps.first_bad;
  for (size_t i = bad; i < steps.size() && steps[i].finished; ++i) {
    EXPECT_GT(steps[i].left_bytes, steps[bad - 1].left_bytes);
  }
}

TEST(Steps, HealthyTrainingHasNoBadOne) {
  EXPECT_FALSE(viewed("/causes/none_vit.pickle.zst").view.steps.first_bad.has_value());
  EXPECT_FALSE(demo().view.steps.first_bad.has_value());
}

TEST(Curves, ReachThePeaksOfTheirRuns) {
  WhyOptions options;
  options.curve_points = 100;
  const Result<Changes> changes = find_changes(*demo().diagnosis, options);
  RecordingView view = demo().view;
  add_curves(*changes, view);
  ASSERT_EQ(view.curves.size(), changes->runs.size());
  ASSERT_EQ(view.curve_events.size(), 100U);
  EXPECT_TRUE(std::is_sorted(view.curve_events.begin(), view.curve_events.end()));
  for (const SettingCurve& curve : view.curves) {
    EXPECT_EQ(*std::max_element(curve.reserved.begin(), curve.reserved.end()), curve.peak_reserved) << curve.conf;
    EXPECT_LE(curve.reserved.size(), 100U);
    EXPECT_TRUE(!curve.completed || curve.reserved.size() == 100U) << curve.conf;
  }
}

}  // namespace
}  // namespace oomscope
