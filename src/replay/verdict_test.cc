#include "replay/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "model/fatal_oom.h"
#include "replay/lifetimes.h"
#include "replay/smallest_cap.h"
#include "support/demo_recording.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

struct Demo {
  Demo() {
    snapshot = demo_recording();
    verification = verify(*snapshot, 0);
    requests = requests_of(*verification);
  }
  [[nodiscard]] FailedRequest failed() const {
    const RequestStream::Failure& failure = requests.failures.back();
    return FailedRequest{
        .event = failure.event, .size_bytes = failure.size, .failure_index = requests.failures.size() - 1};
  }
  [[nodiscard]] std::vector<SweepRun> runs(int64_t cap) const {
    return sweep(requests, default_rule_set(), SweepOptions{.cap_bytes = cap, .threads = 1, .progress = {}});
  }
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<Verification> verification;
  RequestStream requests;
};

TEST(Verdict, SettingThatServesTheRequestMakesItAvoidable) {
  const Demo demo;
  const int64_t cap = 6406 * kMiB;
  const Verdict verdict = *judge(*demo.verification, demo.failed(), Capacity{cap, cap, true}, demo.runs(cap));
  EXPECT_EQ(verdict.verdict, VerdictKind::avoidable);
  EXPECT_EQ(verdict.proof, "expandable_segments:True");
  EXPECT_EQ(verdict.bytes, (6406 - 5812) * kMiB);
}

TEST(Verdict, MoreLiveThanThereIsIsUnavoidable) {
  const Demo demo;
  const int64_t cap = 5700 * kMiB;
  const Verdict verdict = *judge(*demo.verification, demo.failed(), Capacity{cap, cap, true}, demo.runs(cap));
  EXPECT_EQ(verdict.verdict, VerdictKind::unavoidable);
  EXPECT_EQ(verdict.bytes, 6062093672 - cap);
}

TEST(Verdict, WithoutASettingAPackingDecides) {
  const Demo demo;
  const int64_t cap = 5790 * kMiB;
  const Verdict verdict = *judge(*demo.verification, demo.failed(), Capacity{cap, cap, true}, {});
  EXPECT_EQ(verdict.verdict, VerdictKind::avoidable);
  EXPECT_EQ(verdict.proof, "packing");
}

TEST(Verdict, WhereAReplayStoppedWhatTheJobWentOnToAskForCounts) {
  const Demo demo;
  const int64_t cap = 5000 * kMiB;
  WhatIf question{.rules = default_rule_set(), .settings = {}, .cap_bytes = cap};
  const Outcome outcome = replay_what_if(demo.requests, question);
  ASSERT_FALSE(outcome.completed);
  const FailedRequest failed{
      .event = outcome.stopped_at_event, .size_bytes = outcome.refused_bytes, .failure_index = 0, .recorded = false};
  const Verdict verdict = *judge(*demo.verification, failed, Capacity{cap, cap, true}, {});
  EXPECT_EQ(verdict.verdict, VerdictKind::unavoidable);
  EXPECT_EQ(verdict.bytes, 6062093672 - cap);
  // Not where that replay stopped, but where so much is wanted.
  EXPECT_EQ(verdict.event, *fatal_oom(demo.verification->timeline.trace()));
  EXPECT_LT(outcome.stopped_at_event, verdict.event);
}

TEST(Lifetimes, OfACompletedJobHoldTheRequestItDiedOf) {
  const Demo demo;
  EXPECT_EQ(floor_bytes(lifetimes_to_complete(*demo.verification).requested)->bytes, 6062093672);
  EXPECT_LT(floor_bytes(lifetimes_of(*demo.verification).requested)->bytes, 6062093672);
}

TEST(Sweep, TriesAtLeast24SettingsAndPutsThoseThatCompleteFirst) {
  const Demo demo;
  const std::vector<SweepRun> runs = demo.runs(6358 * kMiB);
  EXPECT_GE(runs.size(), 24U);
  EXPECT_TRUE(
      std::is_partitioned(runs.begin(), runs.end(), [](const SweepRun& run) { return run.outcome.main.completed; }));
  EXPECT_EQ(runs.front().conf, "expandable_segments:True");
}

TEST(Sweep, DoesNotDependOnTheNumberOfThreads) {
  const Demo demo;
  const std::vector<SweepRun> one = demo.runs(6358 * kMiB);
  const std::vector<SweepRun> two =
      sweep(demo.requests, default_rule_set(), SweepOptions{.cap_bytes = 6358 * kMiB, .threads = 2, .progress = {}});
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].conf, two[i].conf);
}

TEST(SmallestCap, LiesBetweenTheFloorAndWhatAnUnlimitedRunReserves) {
  const Demo demo;
  const WhatIf question{.rules = default_rule_set(), .settings = {}, .cap_bytes = std::nullopt};
  const Outcome unlimited = replay_what_if(demo.requests, question);
  const SmallestCap found = *smallest_cap(demo.requests, question,
                                          SmallestCapOptions{.threads = 1, .event_budget = 2'000'000, .progress = {}});
  EXPECT_GE(found.first_fit_bytes, unlimited.peak_requested);
  EXPECT_LE(found.smallest_cap_bytes, unlimited.peak_reserved);
  EXPECT_LT(found.largest_failing_bytes, found.smallest_cap_bytes);
}

}  // namespace
}  // namespace oomscope
