// Recordings of a few lines at two values.
#include "plan/scaling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kWeight = 0x7f0000000000;
constexpr uint64_t kActivation = 0x7f0040000000;
constexpr uint64_t kScratch = 0x7f0080000000;

// A weight, then an activation of `activation` bytes; scratch behind it where `with_scratch`.
Snapshot run_of(int64_t weight, int64_t activation, bool with_scratch = false, const char* last_site = "forward") {
  SnapshotBuilder b;
  b.called_from("make");
  b.segment_alloc(kWeight, 20 * kMiB).alloc(kWeight, weight);
  b.called_from(last_site);
  b.segment_alloc(kActivation, activation).alloc(kActivation, activation);
  if (with_scratch) {
    b.called_from("scratch");
    b.segment_alloc(kScratch, 12 * kMiB).alloc(kScratch, 12 * kMiB).free(kScratch, 12 * kMiB);
  }
  return b.build();
}

struct Runs {
  std::vector<Snapshot> snapshots;
  std::vector<std::unique_ptr<Verification>> verifications;
  std::vector<ScalingInput> inputs;

  explicit Runs(std::vector<Snapshot> list) : snapshots(std::move(list)) {
    for (const Snapshot& snapshot : snapshots) {
      verifications.push_back(verify(snapshot, 0, {.limit_bytes = {}, .rules = default_rule_set()}));
      inputs.push_back({.verification = verifications.back().get(), .path = "b" + std::to_string(inputs.size() + 1)});
    }
  }
};

std::vector<int64_t> sizes_at(const ScalingModel& model, int64_t value) {
  const RequestStream requests = requests_at(model, value);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < requests.kind.size(); ++i) {
    if (requests.kind[i] == RequestKind::malloc) sizes.push_back(requests.size[requests.id[i]]);
  }
  return sizes;
}

TEST(Scaling, WeightsStayAndActivationsGrow) {
  const Runs runs({run_of(15 * kMiB, 20 * kMiB), run_of(15 * kMiB, 40 * kMiB)});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{1, 2});
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(model->values, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(sizes_at(*model, 8), (std::vector<int64_t>{15 * kMiB, 160 * kMiB}));
}

TEST(Scaling, RecordingsMayStandInAnyOrder) {
  const Runs runs({run_of(15 * kMiB, 40 * kMiB), run_of(15 * kMiB, 20 * kMiB)});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{4, 2});
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(model->base_value(), 4);
  EXPECT_EQ(sizes_at(*model, 8), (std::vector<int64_t>{15 * kMiB, 80 * kMiB}));
}

TEST(Scaling, ScratchOfOneRecordingAloneIsAGuess) {
  const Runs runs({run_of(15 * kMiB, 20 * kMiB), run_of(15 * kMiB, 40 * kMiB, true)});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{1, 2});
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(model->guesses.size(), 1U);
  EXPECT_EQ(sizes_at(*model, 4), (std::vector<int64_t>{15 * kMiB, 80 * kMiB, 24 * kMiB}));
  const RequestStream other = requests_at(*model, 4, 1);
  EXPECT_NE(other.size[model->guesses[0]], 24 * kMiB);
}

TEST(Scaling, AnotherProgramIsRefusedWithTheFirstDifference) {
  const Runs runs({run_of(15 * kMiB, 20 * kMiB), run_of(15 * kMiB, 40 * kMiB, false, "another")});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{1, 2});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, "recordings-differ");
  const Values& values = model.error().values;
  EXPECT_TRUE(std::any_of(values.begin(), values.end(),
                          [](const auto& value) { return value.second.find("another") != std::string::npos; }));
}

// A layer's activation, called from a line of the script and, further in, from a line of the model.
Snapshot layer_of(uint64_t script_line, uint64_t model_line, int64_t activation) {
  SnapshotBuilder b;
  b.called_from("make");
  b.segment_alloc(kWeight, 20 * kMiB).alloc(kWeight, 15 * kMiB);
  b.python({{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"},
            {"/home/u/model.py", model_line, "forward"},
            {"/v/site-packages/torch/nn/modules/module.py", 1, "_call_impl"},
            {"/home/u/train.py", 10, "main"},
            {"/home/u/train.py", script_line, "<module>"}});
  b.segment_alloc(kActivation, activation).alloc(kActivation, activation);
  return b.build();
}

TEST(Scaling, FromWhereAModelIsCalledMayDiffer) {
  const Runs runs({layer_of(20, 5, 20 * kMiB), layer_of(21, 5, 40 * kMiB)});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{1, 2});
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(sizes_at(*model, 4), (std::vector<int64_t>{15 * kMiB, 80 * kMiB}));
}

TEST(Scaling, WhatAModelDoesMayNotAndTheFirstDifferenceShowsIt) {
  const Runs runs({layer_of(20, 5, 20 * kMiB), layer_of(20, 6, 40 * kMiB)});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{1, 2});
  ASSERT_FALSE(model);
  const auto value = [&](std::string_view name) {
    for (const auto& [key, text] : model.error().values) {
      if (key == name) return text;
    }
    return std::string();
  };
  EXPECT_NE(value("site_a").find("model.py:6"), std::string::npos) << value("site_a");
  EXPECT_NE(value("site_b").find("model.py:5"), std::string::npos) << value("site_b");
}

TEST(Scaling, ValuesThatDisagreeWithTheSizesAreRefused) {
  const Runs runs({run_of(15 * kMiB, 20 * kMiB), run_of(15 * kMiB, 40 * kMiB)});
  const Result<ScalingModel> model = scale(runs.inputs, std::vector<int64_t>{1, 16});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().what, "error.values-disagree");
}

TEST(Scaling, OneRecordingIsItself) {
  const Runs runs({run_of(15 * kMiB, 20 * kMiB)});
  const Result<ScalingModel> model = scale(runs.inputs, std::nullopt);
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(model->source, ValueSource::single);
  EXPECT_EQ(sizes_at(*model, 1), (std::vector<int64_t>{15 * kMiB, 20 * kMiB}));
}

TEST(Scaling, ASnapshotWithoutHistoryIsRefused) {
  SnapshotBuilder b;
  b.segment(kWeight, {live_block(20 * kMiB)});
  Snapshot snapshot = b.build();
  snapshot.traces.resize(1);
  std::vector<Snapshot> list;
  list.push_back(std::move(snapshot));
  const Runs runs(std::move(list));
  const Result<ScalingModel> model = scale(runs.inputs, std::nullopt);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, "no-history");
}

}  // namespace
}  // namespace oomscope
