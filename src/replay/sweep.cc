#include "replay/sweep.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

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

// Without a limit no garbage is collected (see CachingAllocator::gc_active), so that settings which differ in its
// threshold alone have one outcome: the index of the first of them, by run.
std::vector<size_t> first_alike(const std::vector<SweepRun>& runs, bool has_limit) {
  std::vector<AllocatorSettings> effective;
  std::vector<size_t> first;
  for (const SweepRun& run : runs) {
    effective.push_back(run.settings);
    if (!has_limit) effective.back().garbage_collection_threshold = 0;
    first.push_back(
        static_cast<size_t>(std::find(effective.begin(), effective.end(), effective.back()) - effective.begin()));
  }
  return first;
}

bool is_better(const SweepRun& a, const SweepRun& b) {
  const Outcome& x = a.outcome.main;
  const Outcome& y = b.outcome.main;
  if (x.completed != y.completed) return x.completed;
  if ((x.library_tries > 0) != (y.library_tries > 0)) return y.library_tries > 0;  // skipped requests flatter a run
  if (!x.completed && x.stopped_at_request != y.stopped_at_request) return x.stopped_at_request > y.stopped_at_request;
  if (x.peak_reserved != y.peak_reserved) return x.peak_reserved < y.peak_reserved;
  return a.conf.size() < b.conf.size();
}

}  // namespace

std::vector<std::string_view> sweep_confs() { return {kConfs.begin(), kConfs.end()}; }

void add_library_tries(const std::vector<SweepRun>& runs, Caveats& caveats) {
  int64_t most = 0;
  for (const SweepRun& run : runs) {
    if (run.outcome.main.completed) most = std::max(most, run.outcome.main.library_tries);
  }
  if (most == 0) return;
  caveats.push_back({.code = "library-tries-of-settings",
                     .values = {{"count", std::to_string(most)}},
                     .source = CaveatSource::model});
}

std::vector<SweepRun> sweep(const RequestStream& requests, const RuleSet& rules, const SweepOptions& options) {
  std::vector<SweepRun> runs;
  for (std::string_view conf : kConfs) {
    Result<ParsedSettings> parsed = parse_allocator_settings(conf, rules.parser);
    if (!parsed) continue;
    runs.push_back(SweepRun{.conf = std::string(conf), .settings = parsed->settings, .outcome = {}});
  }
  const std::vector<size_t> alike = first_alike(runs, options.cap_bytes && options.cap_kind == CapKind::limit);
  const auto question = [&](size_t run) {
    return WhatIf{.rules = rules,
                  .settings = runs[run].settings,
                  .cap_bytes = options.cap_bytes,
                  .cap_kind = options.cap_kind,
                  .curve_points = options.curve_points};
  };
  const auto share_results = [&] {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (alike[i] != i) runs[i].outcome = runs[alike[i]].outcome;
    }
  };
  const size_t beside = options.beside.size();
  run_parallel(
      beside + runs.size(), options.threads,
      [&](size_t job) {
        if (job < beside) return options.beside[job]();
        const size_t i = job - beside;
        if (alike[i] == i) runs[i].outcome = replay_main(requests, question(i));
      },
      options.progress);
  share_results();

  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return is_better(runs[a], runs[b]); });
  std::set<size_t> wanted = {0};  // PyTorch's default
  for (size_t i = 0; i < std::min(options.ranges, order.size()); ++i) wanted.insert(alike[order[i]]);
  const std::vector<size_t> jobs(wanted.begin(), wanted.end());
  run_parallel(jobs.size(), options.threads,
               [&](size_t job) { look_for_range(requests, question(jobs[job]), runs[jobs[job]].outcome); });
  share_results();

  std::vector<SweepRun> sorted;
  for (size_t i : order) sorted.push_back(std::move(runs[i]));
  return sorted;
}

}  // namespace oomscope
