// What remedies make of the requests of a small job that fails.
#include "analysis/trials.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/rules/ranking.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frames = std::vector<SnapshotBuilder::PythonFrame>;

constexpr int64_t kUnit = 16 << 20;  // so large that each request gets a segment of its own
constexpr uint64_t kFirst = 0x7f0000000000;

const SnapshotBuilder::PythonFrame kMain{"/home/u/train.py", 10, "main"};
const SnapshotBuilder::PythonFrame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_wrapped_call_impl"};
const Frames kMove = {{"/v/site-packages/torch/nn/modules/module.py", 5, "_apply"}, kMain};

Finding found(std::string id) {
  Finding finding;
  finding.id = std::move(id);
  return finding;
}

Frames layer(uint64_t line) {
  return {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"},
          kCall,
          {"/home/u/model.py", line, "forward"},
          kCall,
          kMain};
}

// A model of 4 units, a forward of six layers with 8 units each, and the seventh that fails.
class TrialsOfForward : public testing::Test {
 protected:
  void SetUp() override {
    builder_.pools_recorded();
    ask(kMove, 4 * kUnit);
    for (uint64_t line = 1; line <= 6; ++line) ask(layer(line), 8 * kUnit);
    builder_.python(layer(7)).oom(8 * kUnit, 0);
    for (const auto& [address, bytes] : live_) builder_.segment(address, {live_block(bytes)});
    snapshot_ = builder_.build();
    Result<Diagnosis> diagnosis = diagnose(snapshot_, 0, WhyOptions{});
    ASSERT_TRUE(diagnosis);
    diagnosis_ = *std::move(diagnosis);
    facts_ = find_run_facts(snapshot_, diagnosis_);
  }

  void ask(const Frames& frames, int64_t size) {
    const uint64_t address = kFirst + static_cast<uint64_t>(live_.size()) * (uint64_t{1} << 30);
    builder_.python(frames).segment_alloc(address, size).alloc(address, size);
    live_.emplace_back(address, size);
  }

  SnapshotBuilder builder_;
  std::vector<std::pair<uint64_t, int64_t>> live_;
  Snapshot snapshot_;
  Diagnosis diagnosis_;
  RunFacts facts_;
};

TEST_F(TrialsOfForward, ASmallerBatchShrinksWhatThePassMadeAndTheRequest) {
  const std::vector<Trial> trials = trials_of(facts_, found("capacity"), "smaller-batch");
  ASSERT_EQ(trials.size(), 3u);  // 1/2, 1/4, 1/8
  const Result<Job> half = trials[0].transform(make_job(*diagnosis_.verification, facts_.structure));
  ASSERT_TRUE(half);
  EXPECT_EQ(half->requests.failures.back().size, 4 * kUnit);
  EXPECT_EQ(std::count(half->requests.size.begin(), half->requests.size.end(), 4 * kUnit),
            8);  // model and request, too
}

TEST_F(TrialsOfForward, WhatNoRecordingShowsIsNotTried) {
  for (const char* remedy : {"sharding", "larger-gpu", "mixed-precision", "no such remedy"})
    EXPECT_TRUE(trials_of(facts_, found("capacity"), remedy).empty()) << remedy;
}

TEST_F(TrialsOfForward, TheCausesOwnBlocksGoWhereItsRuleNamesThem) {
  Finding finding = found("second-model");
  EXPECT_TRUE(trials_of(facts_, finding, "delete-references").empty());
  finding.edits.push_back({.allocation = 0, .free_at = 5});
  const std::vector<Trial> trials = trials_of(facts_, finding, "delete-references");
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].edits.blocks.size(), 1u);
}

TEST_F(TrialsOfForward, ChangesSayWhatTheReplayFound) {
  std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts_, .text = nullptr});
  ASSERT_FALSE(findings.empty());
  try_changes(findings, facts_);
  bool any_completes = false;
  for (const Change& change : findings.front().changes) {
    ASSERT_TRUE(change.predicted) << change.remedy;
    EXPECT_FALSE(change.predicted->source.empty()) << change.remedy;
    any_completes = any_completes || change.predicted->completed.value_or(false);
  }
  EXPECT_TRUE(any_completes);
}

TEST_F(TrialsOfForward, WithoutABudgetNothingIsReplayed) {
  std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts_, .text = nullptr});
  try_changes(findings, facts_, 0);
  for (const Change& change : findings.front().changes) EXPECT_FALSE(change.predicted->completed) << change.remedy;
}

}  // namespace
}  // namespace oomscope
