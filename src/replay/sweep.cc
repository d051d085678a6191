#include "replay/sweep.h"

#include <algorithm>
#include <array>

#include "replay/parallel.h"

namespace oomscope {
namespace {

// What people set, alone and together, and the values between which results change.
constexpr std::array<std::string_view, 36> kConfs = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "max_split_size_mb:1024",
    "roundup_power2_divisions:2",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
    "roundup_power2_divisions:16",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "roundup_power2_divisions:[1:16,64:8,>:4]",
    "large_segment_size_mb:32",
    "large_segment_size_mb:64",
    "large_segment_size_mb:128",
    "max_split_size_mb:64,roundup_power2_divisions:8",
    "max_split_size_mb:128,roundup_power2_divisions:4",
    "max_split_size_mb:128,roundup_power2_divisions:8",
    "max_split_size_mb:256,roundup_power2_divisions:8",
    "max_split_size_mb:128,max_non_split_rounding_mb:64",
    "max_split_size_mb:256,max_non_split_rounding_mb:128",
    "expandable_segments:True,roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:8",
    "expandable_segments:True,max_split_size_mb:128",
    "expandable_segments:True,large_segment_size_mb:64",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.8",
    "garbage_collection_threshold:0.9",
    "garbage_collection_threshold:0.6,max_split_size_mb:128",
    "garbage_collection_threshold:0.8,max_split_size_mb:128",
    "garbage_collection_threshold:0.8,max_split_size_mb:256",
    "garbage_collection_threshold:0.8,roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6,expandable_segments:True",
    "garbage_collection_threshold:0.8,expandable_segments:True",
};

}  // namespace

std::vector<std::string_view> sweep_confs() { return {kConfs.begin(), kConfs.end()}; }

std::vector<SweepRun> sweep(const RequestStream& requests, const RuleSet& rules, const SweepOptions& options) {
  std::vector<SweepRun> runs;
  for (std::string_view conf : kConfs) {
    Result<ParsedSettings> parsed = parse_allocator_settings(conf, rules.parser);
    if (!parsed) continue;
    runs.push_back(SweepRun{.conf = std::string(conf), .settings = parsed->settings, .outcome = {}});
  }
  run_parallel(
      runs.size(), options.threads,
      [&](size_t i) {
        runs[i].outcome = replay_range(
            requests, WhatIf{.rules = rules, .settings = runs[i].settings, .cap_bytes = options.cap_bytes});
      },
      options.progress);
  std::stable_sort(runs.begin(), runs.end(), [](const SweepRun& a, const SweepRun& b) {
    const Outcome& x = a.outcome.main;
    const Outcome& y = b.outcome.main;
    if (x.completed != y.completed) return x.completed;
    if ((x.library_tries > 0) != (y.library_tries > 0)) return y.library_tries > 0;  // skipped requests flatter a run
    if (!x.completed && x.stopped_at_event != y.stopped_at_event) return x.stopped_at_event > y.stopped_at_event;
    if (x.peak_reserved != y.peak_reserved) return x.peak_reserved < y.peak_reserved;
    return a.conf.size() < b.conf.size();
  });
  return runs;
}

}  // namespace oomscope
