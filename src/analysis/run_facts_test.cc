// What is read from a small job: passes, what they left, what failed and was survived.
#include "analysis/run_facts.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frames = std::vector<SnapshotBuilder::PythonFrame>;

constexpr int64_t kUnit = 16 << 20;  // so large that each request gets a segment of its own

const SnapshotBuilder::PythonFrame kMain{"/home/u/train.py", 10, "main"};
const SnapshotBuilder::PythonFrame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_wrapped_call_impl"};
const Frames kScores = {{"/home/u/train.py", 20, "main"}};
const Frames kBackward = {};  // its threads have no Python frames
const Frames kLoss = {{"/v/site-packages/torch/nn/functional.py", 1, "cross_entropy"}, kMain};

Frames layer(uint64_t line) {
  return {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"},
          kCall,
          {"/home/u/model.py", line, "forward"},
          kCall,
          kMain};
}

class Job {
 public:
  Job() { builder_.pools_recorded(); }
  Job& asks(const Frames& frames, int64_t size) {
    SnapshotBuilder& at = frames.empty() ? builder_.called_from_nowhere() : builder_.python(frames);
    at.segment_alloc(next_, size).alloc(next_, size);
    live_.emplace_back(next_, size);
    next_ += static_cast<uint64_t>(size);
    return *this;
  }
  Job& frees(size_t blocks) {
    for (; blocks > 0; --blocks) {
      builder_.free(live_.back().first, live_.back().second).segment_free(live_.back().first, live_.back().second);
      live_.pop_back();
    }
    return *this;
  }
  void ends() {
    for (const auto& [address, bytes] : live_) builder_.segment(address, {live_block(bytes)});
    snapshot_ = builder_.build();
    diagnosis_ = *diagnose(snapshot_, 0, WhyOptions{});
    facts_ = find_run_facts(snapshot_, diagnosis_);
  }
  [[nodiscard]] const RunFacts& facts() const { return facts_; }

 private:
  SnapshotBuilder builder_;
  uint64_t next_ = 0x7f0000000000;
  std::vector<std::pair<uint64_t, int64_t>> live_;
  Snapshot snapshot_;
  Diagnosis diagnosis_;
  RunFacts facts_;
};

TEST(Facts, CountWhatIsLiveAtTheEndAndAtThePeak) {
  Job job;
  job.asks(layer(1), 4 * kUnit).asks(layer(2), 4 * kUnit).frees(1).asks(layer(1), kUnit).ends();
  EXPECT_FALSE(job.facts().failed());
  EXPECT_EQ(job.facts().peak_bytes, 8 * kUnit);
  EXPECT_EQ(job.facts().live_bytes, 5 * kUnit);
}

TEST(Growth, OfResultsMadeOutsideOfModulesIsThatOfTheirLine) {
  Job job;
  for (int pass = 0; pass < 12; ++pass) {
    // The layers' blocks go with the pass; what the program makes of them stays below.
    job.asks(kScores, 2 * kUnit);
    for (uint64_t line = 1; line <= 4; ++line) job.asks(layer(line), kUnit);
    job.asks(kLoss, kUnit).asks(kBackward, kUnit).frees(6);
  }
  job.ends();
  ASSERT_EQ(job.facts().growths.size(), 1u);
  const Growth& growth = job.facts().growths.front();
  EXPECT_NE(growth.site, StackId::none);
  EXPECT_FALSE(growth.with_graph);
  EXPECT_GE(growth.bytes, 20 * kUnit);
}

TEST(Growth, IsNoneWherePassesFreeWhatTheyMake) {
  Job job;
  for (int pass = 0; pass < 12; ++pass) {
    for (uint64_t line = 1; line <= 4; ++line) job.asks(layer(line), kUnit);
    job.asks(kLoss, kUnit).asks(kBackward, kUnit).frees(6);
  }
  job.ends();
  EXPECT_TRUE(job.facts().growths.empty());
}

}  // namespace
}  // namespace oomscope
