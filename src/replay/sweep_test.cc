#include "replay/sweep.h"

#include <gtest/gtest.h>

#include "support/demo_recording.h"

namespace oomscope {
namespace {

TEST(Sweep, RunsThatShareAReplayAreWhatTheirOwnWouldBe) {
  const std::unique_ptr<Snapshot> snapshot = demo_recording();
  const std::unique_ptr<Verification> verification = verify(*snapshot, 0);
  const RequestStream requests = requests_of(*verification);
  const RuleSet& rules = verification->config.rules;
  size_t collecting = 0;
  for (const SweepRun& run : sweep(requests, rules, {.cap_bytes = std::nullopt, .threads = 2, .progress = {}})) {
    if (run.settings.garbage_collection_threshold == 0) continue;
    collecting += 1;
    const OutcomeRange own =
        replay_range(requests, {.rules = rules, .settings = run.settings, .cap_bytes = std::nullopt});
    EXPECT_EQ(run.outcome.main.peak_reserved, own.main.peak_reserved) << run.conf;
    EXPECT_EQ(run.outcome.main.num_device_alloc, own.main.num_device_alloc) << run.conf;
    EXPECT_EQ(run.outcome.peak_reserved_high, own.peak_reserved_high) << run.conf;
  }
  EXPECT_GE(collecting, 5U);
}

TEST(Sweep, LooksForTheRangeOfTheBestAndOfTheDefault) {
  const std::unique_ptr<Snapshot> snapshot = demo_recording();
  const std::unique_ptr<Verification> verification = verify(*snapshot, 0);
  const RequestStream requests = requests_of(*verification);
  constexpr size_t kRanges = 2;
  const std::vector<SweepRun> runs =
      sweep(requests, verification->config.rules, {.cap_bytes = std::nullopt, .threads = 2, .ranges = kRanges});
  const std::vector<SweepRun> all =
      sweep(requests, verification->config.rules, {.cap_bytes = std::nullopt, .threads = 1});
  ASSERT_EQ(runs.size(), all.size());
  size_t left_out = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].conf, all[i].conf);
    EXPECT_EQ(runs[i].outcome.main.peak_reserved, all[i].outcome.main.peak_reserved);
    EXPECT_TRUE(all[i].outcome.looked_for);
    left_out += runs[i].outcome.looked_for ? 0 : 1;
    if (i >= kRanges && !runs[i].conf.empty()) continue;
    EXPECT_TRUE(runs[i].outcome.looked_for) << runs[i].conf;
    EXPECT_EQ(runs[i].outcome.peak_reserved_low, all[i].outcome.peak_reserved_low) << runs[i].conf;
    EXPECT_EQ(runs[i].outcome.peak_reserved_high, all[i].outcome.peak_reserved_high) << runs[i].conf;
  }
  EXPECT_GT(left_out, 0U);
}

TEST(Sweep, DoesOtherWorkBeside) {
  const std::unique_ptr<Snapshot> snapshot = demo_recording();
  const RequestStream requests = requests_of(*verify(*snapshot, 0));
  int done = 0;
  const SweepOptions options{.cap_bytes = std::nullopt, .threads = 1, .progress = {}, .beside = {[&] { ++done; }}};
  EXPECT_FALSE(sweep(requests, verify(*snapshot, 0)->config.rules, options).empty());
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace oomscope
