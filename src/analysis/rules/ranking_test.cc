// The table of causes, and what is told first of small recordings that fail.
#include "analysis/rules/ranking.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "analysis/run_facts.h"
#include "remedies/causes.h"
#include "remedies/remedy.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frames = std::vector<SnapshotBuilder::PythonFrame>;

constexpr int64_t kUnit = 16 << 20;  // so large that each request gets a segment of its own

const SnapshotBuilder::PythonFrame kMain{"/home/u/train.py", 10, "main"};
const SnapshotBuilder::PythonFrame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_wrapped_call_impl"};
const Frames kMove = {{"/v/site-packages/torch/nn/modules/module.py", 5, "_apply"}, kMain};
const Frames kLoss = {{"/v/site-packages/torch/nn/functional.py", 1, "cross_entropy"}, kMain};

Frames linear(uint64_t line) {
  return {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"},
          kCall,
          {"/home/u/model.py", line, "forward"},
          kCall,
          kMain};
}
Frames relu(uint64_t line) {
  return {{"/v/site-packages/torch/nn/functional.py", 9, "relu"}, {"/home/u/model.py", line, "forward"}, kCall, kMain};
}

// A run that ends with a failure.
class Job {
 public:
  Job() { builder_.pools_recorded(); }
  Job& asks(const Frames& frames, int64_t size) {
    at(frames).segment_alloc(next_, size).alloc(next_, size);
    live_.push_back({next_, size});
    next_ += static_cast<uint64_t>(size);
    return *this;
  }
  // At an address where no allocator would put it.
  Job& strays(const Frames& frames, int64_t size) {
    at(frames).segment_alloc(next_, 2 * size).alloc(next_ + static_cast<uint64_t>(size), size);
    return *this;
  }
  Job& frees_last(int blocks) {
    for (int i = 0; i < blocks; ++i) {
      builder_.free(live_.back().first, live_.back().second).segment_free(live_.back().first, live_.back().second);
      live_.pop_back();
    }
    return *this;
  }
  std::vector<Finding> fails(const Frames& frames, int64_t size) {
    at(frames).oom(size, 0);
    for (const auto& [address, bytes] : live_) builder_.segment(address, {live_block(bytes)});
    const Snapshot snapshot = builder_.build();
    const Result<Diagnosis> diagnosis = diagnose(snapshot, 0, WhyOptions{});
    if (!diagnosis) return {};
    const RunFacts facts = find_run_facts(snapshot, *diagnosis);
    return find_findings(CaseFacts{.run = &facts, .text = nullptr});
  }

 private:
  SnapshotBuilder& at(const Frames& frames) {
    return frames.empty() ? builder_.called_from_nowhere() : builder_.python(frames);
  }
  SnapshotBuilder builder_;
  uint64_t next_ = 0x7f0000000000;
  std::vector<std::pair<uint64_t, int64_t>> live_;
};

bool is_found(const std::vector<Finding>& findings, std::string_view id) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.id == id; });
}

TEST(Table, HasAnIdOnceForRecordingsAndOnceForLogs) {
  std::map<std::string_view, int> rows;
  std::set<std::vector<Finding> (*)(const CaseFacts&)> rules;
  for (const Cause& cause : causes()) {
    EXPECT_LE(++rows[cause.id], 2) << cause.id;
    EXPECT_TRUE(rules.insert(cause.find).second) << cause.id << " has another's rule";
    EXPECT_NE(find_cause_guide(cause.id), nullptr) << cause.id;
    EXPECT_TRUE(cause.find(CaseFacts{}).empty()) << cause.id << " needs no facts";
  }
  for (const CauseGuide& guide : cause_guides()) EXPECT_TRUE(rows.contains(guide.id)) << guide.id << " is never found";
}

Job job_that_keeps_graphs() {
  Job job;
  job.asks(kMove, 4 * kUnit);
  for (int pass = 0; pass < 6; ++pass) {
    for (uint64_t layer = 1; layer <= 6; ++layer) job.asks(linear(layer), 8 * kUnit);
    job.asks(kLoss, 2 * kUnit).asks({}, 4 * kUnit).frees_last(1);
  }
  return job;
}

TEST(Ranking, TheCauseComesBeforeItsSymptom) {
  const std::vector<Finding> findings = job_that_keeps_graphs().fails(linear(1), 8 * kUnit);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "graph-kept");
  EXPECT_TRUE(is_plain_cause(findings.back().id)) << findings.back().id;
  EXPECT_FALSE(is_found(findings, "none"));
}

TEST(Ranking, ChangesAreThoseOfTheGuide) {
  for (const Finding& finding : job_that_keeps_graphs().fails(linear(1), 8 * kUnit)) {
    const CauseGuide* guide = find_cause_guide(finding.id);
    ASSERT_NE(guide, nullptr) << finding.id;
    EXPECT_FALSE(finding.changes.empty()) << finding.id;
    for (const Change& change : finding.changes) {
      EXPECT_NE(std::find(guide->remedies.begin(), guide->remedies.end(), change.remedy), guide->remedies.end());
    }
  }
}

TEST(Ranking, NothingIsSureWhereTheReplayIsNotExact) {
  for (const Finding& finding : job_that_keeps_graphs().strays(linear(1), kUnit).fails(linear(1), 8 * kUnit)) {
    EXPECT_NE(finding.confidence, Confidence::high) << finding.id;
  }
}

// An MLP widens four times and comes back; then its activation asks for what fc1 made.
TEST(Logits, AreNotAWideLayer) {
  Job mlp;
  mlp.asks(kMove, 4 * kUnit).asks(linear(1), 20 * kUnit).asks(linear(2), 80 * kUnit);
  EXPECT_FALSE(is_found(mlp.fails(relu(3), 80 * kUnit), "logits"));
  Job one_size;
  one_size.asks(kMove, 4 * kUnit).asks(linear(1), 80 * kUnit);
  EXPECT_FALSE(is_found(one_size.fails(kLoss, 80 * kUnit), "logits"));
  Job wide;
  wide.asks(kMove, 4 * kUnit).asks(linear(1), 10 * kUnit).asks(linear(2), 80 * kUnit);
  EXPECT_FALSE(is_found(wide.fails(relu(3), 80 * kUnit), "logits"));
}

TEST(Logits, AreTheHeadsOutputThatTheLossCopies) {
  Job in_loss;
  in_loss.asks(kMove, 4 * kUnit).asks(linear(1), 3 * kUnit).asks(linear(2), 80 * kUnit);
  EXPECT_TRUE(is_found(in_loss.fails(kLoss, 80 * kUnit), "logits"));
  Job upcast;
  upcast.asks(kMove, 4 * kUnit).asks(linear(1), 3 * kUnit).asks(linear(2), 80 * kUnit);
  EXPECT_TRUE(is_found(upcast.fails(relu(3), 160 * kUnit), "logits"));
}

}  // namespace
}  // namespace oomscope
