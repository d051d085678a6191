// Finding rules and limit by trying.
//
// No snapshot records which torch wrote it, nor the memory limit of the process. Both leave traces: a wrong rule or a
// wrong limit leads to a difference. So: propose, replay, keep what has none. A limit is proposed from what was allowed
// (it is at least the largest total that was) and what was refused; with garbage collection, whose threshold is a share
// of it, the first difference of each try says whether it was too low or too high, and bisection finds it.
#include "replay/verify.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "replay/final_state.h"
#include "replay/pool_guess.h"
#include "replay/recorded_device.h"

namespace oomscope {
namespace {

// What a pass over the driver events alone shows.
struct Pressure {
  int64_t largest_allowed = 0;              // reserved + request of a driver call that succeeded
  std::optional<int64_t> smallest_refused;  // of an oom entry that was not the card's doing
  int64_t ooms = 0;
  int64_t driver_ooms = 0;
  int64_t most_reserved = 0;
  bool suspected_retry = false;  // releases, then a segment, above the largest total ever allowed
  bool releases = false;
};

class PressureScan {
 public:
  PressureScan(const Timeline& timeline, const AllocatorSettings& settings, const RuleSet& rules)
      : timeline_(timeline), trace_(timeline.trace()), settings_(settings), rules_(rules) {}

  Pressure run() {
    for (const StartSegment& segment : timeline_.start) {
      for (const StartBlock& block : segment.blocks) {
        if (block.state != StartState::unmapped) reserved_ += block.size;
      }
    }
    std::vector<int64_t> retries;  // totals in front of a burst that a segment follows
    int64_t before_burst = 0;
    uint32_t previous = 0;
    for (const uint32_t i : timeline_.driver_events) {
      if (call_between(previous, i)) before_burst = 0;
      previous = i;
      switch (trace_.action[i]) {
        case Action::segment_alloc: allow(i, trace_.size[i], before_burst, retries); break;
        case Action::segment_map: allow(i, request_behind(i), before_burst, retries); break;
        case Action::segment_free:
        case Action::segment_unmap:
          if (before_burst == 0) {
            before_burst = reserved_;
            pressure_.releases = true;
          }
          reserved_ -= trace_.size[i];
          break;
        case Action::oom:
          refuse(i, before_burst);
          before_burst = 0;
          break;
        default: break;
      }
    }
    for (int64_t total : retries)
      pressure_.suspected_retry = pressure_.suspected_retry || total > pressure_.largest_allowed;
    return pressure_;
  }

 private:
  // Does an allocation or a free stand between two driver events, so that they belong to different calls?
  [[nodiscard]] bool call_between(uint32_t from, uint32_t to) const {
    for (uint32_t i = from + 1; i < to; ++i) {
      if (trace_.action[i] == Action::alloc || trace_.action[i] == Action::free_requested) return true;
    }
    return false;
  }

  void allow(size_t event, int64_t alloc_size, int64_t before_burst, std::vector<int64_t>& retries) {
    const bool first_step = event == 0 || trace_.action[event - 1] != Action::segment_map;
    if (first_step) pressure_.largest_allowed = std::max(pressure_.largest_allowed, reserved_ + alloc_size);
    if (before_burst != 0) retries.push_back(before_burst + alloc_size);
    reserved_ += trace_.size[event];
    pressure_.most_reserved = std::max(pressure_.most_reserved, reserved_);
  }

  // The bytes a map step was asked for are not in its event: they follow from the alloc behind it.
  int64_t request_behind(size_t event) const {
    for (size_t i = event + 1; i < trace_.size_events(); ++i) {
      if (trace_.action[i] == Action::alloc || trace_.action[i] == Action::oom) {
        return allocation_size(round_size(std::max<int64_t>(trace_.size[i], 1), settings_, rules_), settings_);
      }
    }
    return trace_.size[event];
  }

  // The last try came after all releases, unless release_available freed in vain inside a pool scope: then only the
  // first try is certain.
  void refuse(size_t event, int64_t before_burst) {
    pressure_.ooms += 1;
    const int64_t alloc_size = allocation_size(std::max<int64_t>(trace_.size[event], 1), settings_);
    const bool card_full = trace_.addr[event] < static_cast<uint64_t>(alloc_size);
    if (card_full) {
      pressure_.driver_ooms += 1;
      return;
    }
    const bool in_vain = before_burst != 0 && settings_.max_split_size_bytes != kUnlimitedBytes;
    const int64_t total = (in_vain ? before_burst : reserved_) + alloc_size;
    pressure_.smallest_refused = std::min(pressure_.smallest_refused.value_or(total), total);
  }

  const Timeline& timeline_;
  const Trace& trace_;
  const AllocatorSettings& settings_;
  const RuleSet& rules_;
  int64_t reserved_ = 0;
  Pressure pressure_;
};

// The settings at the time of the dump, or what the events betray where the file has none (before torch 2.4).
AllocatorSettings settings_of(const Snapshot& snapshot, int32_t device, const RuleSet& rules, Caveats& caveats) {
  if (snapshot.settings) {
    ParsedSettings parsed = from_recorded(*snapshot.settings, rules.parser);
    caveats.insert(caveats.end(), parsed.warnings.begin(), parsed.warnings.end());
    return parsed.settings;
  }
  AllocatorSettings settings;
  const Trace& trace = snapshot.traces[static_cast<size_t>(device)];
  settings.expandable_segments = std::any_of(trace.action.begin(), trace.action.end(), [](Action action) {
    return action == Action::segment_map || action == Action::segment_unmap;
  });
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device && segment.is_expandable) settings.expandable_segments = true;
  }
  caveats.push_back(Caveat{.code = "settings-not-recorded", .values = {}, .source = CaveatSource::recording});
  return settings;
}

class Verifier {
 public:
  Verifier(const Snapshot& snapshot, int32_t device, const VerifyOptions& options)
      : snapshot_(snapshot), device_(device), options_(options) {}

  std::unique_ptr<Verification> run() {
    std::unique_ptr<Verification> best;
    for (const RuleSet& rules : all_rule_sets()) {
      if (options_.rules && rules.name != options_.rules->name) continue;
      std::unique_ptr<Verification> tried = try_with(rules, {});
      if (best == nullptr || better(*tried, *best)) best = std::move(tried);
      if (best->exact()) break;
    }
    return with_guessed_pools(std::move(best));
  }

 private:
  static int64_t mismatches(const Verification& v) {
    return v.replay->differences() + (v.final_state_checked && !v.final_state_equal ? 1 : 0);
  }
  // After the first difference everything may differ: what counts is how far a replay gets.
  static bool better(const Verification& a, const Verification& b) {
    if (reach(a) != reach(b)) return reach(a) > reach(b);
    return mismatches(a) < mismatches(b);
  }
  static int64_t reach(const Verification& v) {
    const std::optional<Difference>& difference = v.replay->first_difference();
    return difference ? difference->event : std::numeric_limits<int64_t>::max();
  }

  std::unique_ptr<Verification> with_guessed_pools(std::unique_ptr<Verification> tried) {
    const RuleSet rules = tried->config.rules;
    if (tried->exact() || !tried->replay->first_difference()) return tried;
    // Differences: perhaps some memory belonged to pools that were gone at the end. Worth a bounded number of replays.
    constexpr size_t kMostGuesses = 100;
    constexpr size_t kGuessBudget = 20'000'000;
    PoolGuess guess(tried->timeline);
    const size_t events = tried->timeline.trace().size_events() + 1;
    const size_t most = std::min(kMostGuesses, kGuessBudget / events);
    const Verification* latest = tried.get();
    std::unique_ptr<Verification> next;
    for (size_t i = 0;
         i < most && latest->replay->first_difference() && guess.learn(*latest->replay->first_difference()); ++i) {
      next = try_with(rules, guess.spans());
      latest = next.get();
      if (next->exact()) break;
    }
    if (next == nullptr || !better(*next, *tried)) return tried;
    next->caveats.push_back(Caveat{.code = "pools-inferred", .values = {}, .source = CaveatSource::model});
    return next;
  }

  std::unique_ptr<Verification> try_with(const RuleSet& rules, const std::vector<PoolSpan>& pools) {
    Caveats caveats;
    collection_range_.reset();
    const AllocatorSettings settings = settings_of(snapshot_, device_, rules, caveats);
    auto base = std::make_unique<Verification>();
    base->timeline = build_timeline(
        snapshot_, device_, [&](int64_t request) { return round_size(request, settings, rules); }, pools);
    base->config = ReplayConfig{
        .rules = rules, .settings = settings, .limit_bytes = options_.limit_bytes, .driver_refuses = false};
    base->caveats = caveats;
    pressure_ = PressureScan(base->timeline, settings, rules).run();
    base->refused_requests = pressure_.ooms;
    base->refused_by_driver = pressure_.driver_ooms;
    base->config.driver_refuses = pressure_.driver_ooms > 0;
    find_limit(*base);
    finish(*base);
    return base;
  }

  void replay(Verification& v, std::optional<int64_t> limit, bool stop_at_difference = false) {
    v.config.limit_bytes = limit;
    v.replay = std::make_unique<ExactReplay>(v.timeline, v.config);
    v.replay->run(kNoEvent, stop_at_difference);
  }

  void find_limit(Verification& v) {
    if (options_.limit_bytes) return replay(v, options_.limit_bytes);
    const bool collects = v.config.settings.garbage_collection_threshold > 0 && pressure_.releases;
    const bool limited = pressure_.smallest_refused && *pressure_.smallest_refused > pressure_.largest_allowed;
    if (collects) return bisect_collection(v);
    if (limited) return replay(v, pressure_.largest_allowed);
    if (!pressure_.suspected_retry) return replay(v, std::nullopt);
    // Taken only if the limit explains every burst: a program that calls empty_cache looks similar at its peak. Looked
    // at up to the first difference, since behind it nothing explains anything.
    replay(v, pressure_.largest_allowed, true);
    const bool explains = v.replay->unexplained_releases() == 0 && v.replay->own_release_bursts() > 0;
    const int64_t reach_with = explains ? reach(v) : -1;
    if (explains && v.replay->differences() == 0) return;
    replay(v, std::nullopt);
    if (reach(v) < reach_with) replay(v, pressure_.largest_allowed);
  }

  // With collection on, releases begin at threshold * limit. Every try with a wrong limit meets a difference that says
  // in which direction it was wrong.
  void bisect_collection(Verification& v) {
    replay(v, std::nullopt, true);
    if (!v.replay->first_difference() && v.replay->unexplained_releases() == 0) return;
    const double threshold = v.config.settings.garbage_collection_threshold;
    int64_t low = pressure_.largest_allowed;
    // Collection runs above threshold * limit, so somewhere reserved memory was above that.
    int64_t high = static_cast<int64_t>(static_cast<double>(pressure_.most_reserved) / threshold) + (int64_t{1} << 21);
    if (pressure_.smallest_refused) high = std::min(high, *pressure_.smallest_refused - 1);
    constexpr int64_t kFine = 4096;
    std::pair<int64_t, int64_t> furthest = {-1, low};  // event of the first difference, limit
    while (low + kFine < high) {
      const int64_t middle = low + (high - low) / 2;
      replay(v, middle, true);
      const std::optional<Difference>& difference = v.replay->first_difference();
      if (!difference && v.replay->unexplained_releases() == 0) {
        // Consistent. The smallest such limit explains most refusals by itself, so go on downwards.
        if (!collection_range_) collection_range_ = LimitRange{.low_bytes = low, .high_bytes = high};
        high = middle;
        continue;
      }
      // Releases that nobody called for and the engine did not make either: collection began too late.
      const bool too_high = difference ? difference->hint == LimitHint::too_high : true;
      if (reach(v) > furthest.first) furthest = {reach(v), middle};
      (too_high ? high : low) = middle;
    }
    replay(v, collection_range_ ? high : furthest.second);
  }

  void finish(Verification& v) {
    if (v.config.limit_bytes) {
      LimitRange range{.low_bytes = pressure_.largest_allowed, .high_bytes = *v.config.limit_bytes};
      if (collection_range_) {
        range = *collection_range_;
        range.low_bytes = std::max(range.low_bytes, pressure_.largest_allowed);
      }
      const std::optional<int64_t> refused = v.replay->allocator().smallest_refused_bytes();
      if (!collection_range_ && refused) range.high_bytes = std::max(range.low_bytes, *refused - 1);
      if (options_.limit_bytes) range = LimitRange{*options_.limit_bytes, *options_.limit_bytes};
      v.limit = range;
    }
    add_caveats(v);
    v.final_state_checked = snapshot_.complete;
    if (!v.final_state_checked) return;
    const std::string text = compare_final_state(snapshot_, device_, v.replay->allocator());
    v.final_state_equal = text.empty();
    if (!text.empty()) {
      v.caveats.push_back(
          Caveat{.code = "final-state-differs", .values = {{"difference", text}}, .source = CaveatSource::model});
    }
  }

  void add_caveats(Verification& v) const {
    const Timeline& timeline = v.timeline;
    if (timeline.trace().size_events() == 0) return;  // a state without history starts nowhere
    if (timeline.starts_mid_life) {
      int64_t live = 0;
      for (const StartSegment& segment : timeline.start) {
        live += std::count_if(segment.blocks.begin(), segment.blocks.end(),
                              [](const StartBlock& block) { return block.allocation != kNoAllocation; });
      }
      v.caveats.push_back(Caveat{
          .code = "starts-mid-life", .values = {{"count", std::to_string(live)}}, .source = CaveatSource::recording});
    }
    if (timeline.uncertain_ghosts > 0) {
      v.caveats.push_back(Caveat{.code = "uncertain-start-blocks",
                                 .values = {{"count", std::to_string(timeline.uncertain_ghosts)}},
                                 .source = CaveatSource::recording});
    }
    if (timeline.starts_mid_life && v.config.settings.garbage_collection_threshold > 0) {
      v.caveats.push_back(Caveat{.code = "unknown-ages", .values = {}, .source = CaveatSource::recording});
    }
    if (timeline.orphan_frees > 0) {
      v.caveats.push_back(Caveat{.code = "orphan-frees",
                                 .values = {{"count", std::to_string(timeline.orphan_frees)}},
                                 .source = CaveatSource::recording});
    }
  }

  const Snapshot& snapshot_;
  int32_t device_;
  const VerifyOptions& options_;
  Pressure pressure_;
  std::optional<LimitRange> collection_range_;
};

}  // namespace

std::unique_ptr<Verification> verify(const Snapshot& snapshot, int32_t device, const VerifyOptions& options) {
  return Verifier(snapshot, device, options).run();
}

std::vector<std::string_view> equally_exact_rules(const Verification& verification) {
  std::vector<std::string_view> names;
  for (const RuleSet& rules : all_rule_sets()) {
    if (rules.name == verification.config.rules.name) continue;
    Timeline timeline = verification.timeline;
    ReplayConfig config = verification.config;
    config.rules = rules;
    ExactReplay replay(timeline, config);
    replay.run(kNoEvent, true);
    if (replay.differences() == 0) names.push_back(rules.name);
  }
  return names;
}

}  // namespace oomscope
