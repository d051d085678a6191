// Finding rules and limit by trying.
//
// No snapshot records which torch wrote it, nor the memory limit of the process. Both leave traces: a wrong rule or a
// wrong limit leads to a difference. So: propose, replay, keep what has none. A limit is proposed from what was allowed
// (it is at least the largest total that was) and what was refused; with garbage collection, whose threshold is a share
// of it, the first difference of each try says whether it was too low or too high, and bisection finds it.
#include "replay/verify.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "model/pairing.h"
#include "replay/final_state.h"
#include "replay/pool_guess.h"
#include "replay/pressure.h"
#include "replay/replay_in_two.h"
#include "replay/suspects.h"

namespace oomscope {
namespace {

// What people set, where the file does not say what was set: tried like rule sets, the likelier first.
constexpr std::array<std::string_view, 16> kLikelySettings = {"max_split_size_mb:128",
                                                              "max_split_size_mb:512",
                                                              "max_split_size_mb:64",
                                                              "max_split_size_mb:256",
                                                              "max_split_size_mb:32",
                                                              "max_split_size_mb:1024",
                                                              "garbage_collection_threshold:0.6",
                                                              "garbage_collection_threshold:0.8",
                                                              "garbage_collection_threshold:0.9",
                                                              "garbage_collection_threshold:0.7",
                                                              "garbage_collection_threshold:0.5",
                                                              "roundup_power2_divisions:4",
                                                              "roundup_power2_divisions:8",
                                                              "roundup_power2_divisions:16",
                                                              "roundup_power2_divisions:2",
                                                              "garbage_collection_threshold:0.6,max_split_size_mb:128"};

// What the user told; else the settings at the time of the dump; where the file has none (before torch 2.4, or it was
// cut), `guess` and what the events betray.
AllocatorSettings settings_of(const Snapshot& snapshot, int32_t device, const std::optional<std::string>& told,
                              const RuleSet& rules, std::string_view guess, Caveats& caveats) {
  if (told) {
    Result<ParsedSettings> parsed = parse_allocator_settings(*told, rules.parser);
    if (!parsed) return {};
    caveats.insert(caveats.end(), parsed->warnings.begin(), parsed->warnings.end());
    return parsed->settings;
  }
  if (snapshot.settings) {
    ParsedSettings parsed = from_recorded(*snapshot.settings, rules.parser);
    caveats.insert(caveats.end(), parsed.warnings.begin(), parsed.warnings.end());
    return parsed.settings;
  }
  AllocatorSettings settings;
  if (const Result<ParsedSettings> parsed = parse_allocator_settings(guess, rules.parser)) settings = parsed->settings;
  const Trace& trace = snapshot.traces[static_cast<size_t>(device)];
  settings.expandable_segments = std::any_of(trace.action.begin(), trace.action.end(), [](Action action) {
    return action == Action::segment_map || action == Action::segment_unmap;
  });
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device && segment.is_expandable) settings.expandable_segments = true;
  }
  if (!guess.empty()) {
    caveats.push_back(
        Caveat{.code = "settings-inferred", .values = {{"conf", std::string(guess)}}, .source = CaveatSource::model});
  } else {
    const char* code = snapshot.complete ? "settings-not-recorded" : "settings-cut-off";
    caveats.push_back(Caveat{.code = code, .values = {}, .source = CaveatSource::recording});
  }
  return settings;
}

// One way to explain the recording, and what it was found with.
struct Attempt {
  std::unique_ptr<Verification> v;
  Pressure pressure;
  std::optional<LimitRange> collection_range;  // the limits that explain every garbage collection
  bool settled = false;                        // replayed to its end and compared
  bool is_corrected = false;                   // one address is wrong, and all else is explained
  [[nodiscard]] bool is_done() const { return v->exact() || is_corrected; }
};

class Verifier {
 public:
  Verifier(const Snapshot& snapshot, int32_t device, const VerifyOptions& options, std::optional<Pairs> pairs)
      : snapshot_(snapshot), device_(device), options_(options), pairs_(std::move(pairs)) {}

  std::unique_ptr<Verification> run() {
    std::optional<Attempt> best;
    for (const RuleSet& rules : all_rule_sets()) {
      if (options_.rules && rules.name != options_.rules->name) continue;
      Attempt tried = try_with(rules, {}, nullptr);
      if (!best || better(tried, *best)) best = std::move(tried);
      if (best->v->exact()) break;
    }
    best = with_likely_settings(*std::move(best));
    best = with_limit_approached(*std::move(best));
    best = with_one_address_corrected(*std::move(best), kFewSuspects, false);  // often the first
    best = with_guessed_pools(*std::move(best), kFewGuesses);
    best = with_one_address_corrected(*std::move(best), kManySuspects, false);
    best = with_one_address_corrected(*std::move(best), kManySuspects, true);
    best = with_other_rules_and_guessed_pools(*std::move(best));
    best = with_guessed_pools(*std::move(best), kManyGuesses);
    settle(*best);
    return std::move(best->v);
  }

 private:
  // What one kind of explanation may cost: others are tried after it.
  class HalfOfTheBudget {
   public:
    explicit HalfOfTheBudget(Verifier& verifier) : verifier_(verifier), kept_(verifier.budget_ / 2) {
      verifier_.budget_ -= kept_;
    }
    HalfOfTheBudget(const HalfOfTheBudget&) = delete;
    HalfOfTheBudget& operator=(const HalfOfTheBudget&) = delete;
    ~HalfOfTheBudget() { verifier_.budget_ += kept_; }

   private:
    Verifier& verifier_;
    int64_t kept_;
  };

  static int64_t mismatches(const Verification& v) {
    return v.replay->differences() + (v.final_state_checked && !v.final_state_equal ? 1 : 0);
  }
  // Those of the attempt first.
  [[nodiscard]] std::vector<RuleSet> rules_from(const Attempt& attempt) const {
    std::vector<RuleSet> rule_sets = {attempt.v->config.rules};
    for (const RuleSet& rules : all_rule_sets()) {
      if (!options_.rules && rules.name != rule_sets[0].name) rule_sets.push_back(rules);
    }
    return rule_sets;
  }
  // After the first difference everything may differ: what counts is how far a replay gets, and only between equals how
  // much differs behind it.
  bool better(Attempt& a, Attempt& b) {
    if (reach(a) != reach(b)) return reach(a) > reach(b);
    settle(a);
    settle(b);
    return mismatches(*a.v) < mismatches(*b.v);
  }
  static int64_t reach(const Attempt& attempt) {
    const std::optional<Difference>& difference = attempt.v->replay->first_difference();
    return difference ? difference->event : std::numeric_limits<int64_t>::max();
  }

  // Differences, and the file does not tell the settings: perhaps they were not the defaults.
  Attempt with_likely_settings(Attempt tried) {
    if (tried.v->exact() || snapshot_.settings || options_.conf) return tried;
    tried = with_final_blocks(std::move(tried));
    std::string_view chosen;
    // The rules that get furthest without the right settings need not be the right ones.
    constexpr size_t kFewEvents = 100'000;  // for long files, only with the rules that got furthest
    const bool is_long = tried.v->timeline.trace().size_events() > kFewEvents;
    std::vector<RuleSet> candidates = rules_from(tried);
    if (is_long) candidates.resize(1);
    for (const RuleSet& rules : candidates) {
      for (std::string_view conf : kLikelySettings) {
        if (budget_ <= 0 || tried.v->exact()) break;
        guess_ = conf;
        Attempt next = try_with(rules, {}, nullptr);
        if (!better(next, tried)) continue;
        tried = std::move(next);
        chosen = conf;
      }
    }
    guess_ = chosen;
    return tried;
  }

  // ... or what lived all the time stands only in the segments, which are of a later time.
  Attempt with_final_blocks(Attempt tried) {
    if (!snapshot_.events_were_cut()) return tried;
    keeps_final_blocks_ = true;
    Attempt next = try_with(tried.v->config.rules, {}, nullptr);
    if (better(next, tried)) return next;
    keeps_final_blocks_ = false;
    return tried;
  }

  // Differences, under collection: perhaps they misled about the limit.
  Attempt with_limit_approached(Attempt tried) {
    const bool collects = tried.v->config.settings.garbage_collection_threshold > 0;
    if (tried.is_done() || !collects || options_.limit_bytes) return tried;
    const HalfOfTheBudget share(*this);
    approaches_limits_ = true;
    for (const RuleSet& rules : rules_from(tried)) {
      Attempt next = try_with(rules, {}, nullptr);
      if (better(next, tried)) tried = std::move(next);
      if (tried.v->exact() || budget_ <= 0) break;
    }
    approaches_limits_ = false;
    return tried;
  }

  // Differences: perhaps some memory belonged to pools that were gone at the end. What gets furthest is followed first.
  // A wrong guess gets further too, as each replay with more freedom does: only one that explains all of it is kept.
  Attempt with_guessed_pools(Attempt tried, int most_guesses, const std::shared_ptr<const Trace>& corrected = nullptr) {
    if (tried.is_done() || !tried.v->replay->first_difference()) return tried;
    const HalfOfTheBudget share(*this);
    struct Guess {
      std::vector<PoolGuess::Way> taken;
      int64_t reach;
      Difference difference;
      std::vector<PoolGuess::Way> ways;  // to go on from here
      size_t next_way = 0;
    };
    if (!empties_) {
      empties_ = stacks_that_call(snapshot_, [](std::string_view function) { return function == "empty_cache"; });
    }
    const PoolGuess start(tried.v->timeline, tried.v->config.settings.large_segment_size_bytes, *empties_);
    const Difference& first = *tried.v->replay->first_difference();
    std::vector<Guess> open = {{{}, reach(tried), first, start.ways_to_explain(first)}};
    std::set<std::vector<std::pair<size_t, PoolId>>> seen;
    for (int tries = 0; !open.empty() && tries < most_guesses && budget_ > 0;) {
      const auto furthest = std::max_element(open.begin(), open.end(), [](const Guess& a, const Guess& b) {
        return std::pair(a.reach, a.taken.size()) < std::pair(b.reach, b.taken.size());
      });
      if (furthest->next_way == furthest->ways.size()) {
        open.erase(furthest);
        continue;
      }
      std::vector<PoolGuess::Way> taken = furthest->taken;
      taken.push_back(furthest->ways[furthest->next_way++]);
      PoolGuess pools = start;
      for (const PoolGuess::Way& way : taken) pools.take(way);
      if (!seen.insert(pools.assignment()).second) continue;
      tries += 1;
      Attempt next = try_with(tried.v->config.rules, pools.spans(), corrected);
      if (next.v->exact()) {
        next.v->caveats.push_back(Caveat{.code = "pools-inferred", .values = {}, .source = CaveatSource::model});
        return next;
      }
      const std::optional<Difference>& difference = next.v->replay->first_difference();
      if (!difference || difference->is_same(furthest->difference)) continue;
      open.push_back({std::move(taken), reach(next), *difference, pools.ways_to_explain(*difference)});
    }
    return tried;
  }

  // The rules that get furthest without the right pools need not be the right ones.
  Attempt with_other_rules_and_guessed_pools(Attempt tried) {
    if (tried.is_done()) return tried;
    for (const RuleSet& rules : rules_from(tried)) {
      if (rules.name == tried.v->config.rules.name || budget_ <= 0) continue;
      Attempt next = with_guessed_pools(try_with(rules, {}, nullptr), kFewGuesses);
      if (next.v->exact()) return next;
    }
    return tried;
  }

  // Differences: perhaps one address is wrong. Then it is the one that has to be another for all events to agree, and
  // that is where the difference is, not where it first shows. A wrong address may also have led to the wrong rules.
  // Of few suspects only under the rules that get furthest.
  Attempt with_one_address_corrected(Attempt tried, size_t most_suspects, bool guess_pools) {
    if (tried.is_done() || !snapshot_.complete) return tried;
    const HalfOfTheBudget share(*this);
    std::vector<Suspect> suspects = find_suspects(tried.v->timeline, most_suspects);
    if (const std::optional<Suspect> shown = shown_by(tried)) suspects.insert(suspects.begin(), *shown);
    std::vector<RuleSet> candidates = rules_from(tried);
    if (most_suspects == kFewSuspects) candidates.resize(1);
    for (const RuleSet& rules : candidates) {
      std::optional<Attempt> found = correct_one_of(suspects, rules, guess_pools);
      if (found) return *std::move(found);
    }
    return tried;
  }

  // The first suspect with which all events agree; suspects that the engine names meanwhile are tried too.
  std::optional<Attempt> correct_one_of(std::vector<Suspect> suspects, const RuleSet& rules, bool guess_pools) {
    const Trace& recorded = snapshot_.traces[static_cast<size_t>(device_)];
    auto trace = std::make_shared<Trace>(recorded);
    for (size_t i = 0; i < suspects.size() && budget_ > 0; ++i) {
      const auto [event, address] = suspects[i];
      trace->addr.set(event, address);
      if (address == kUnknownAddress) trace->size.set(event, 0);
      Attempt next = try_with(rules, {}, trace);
      if (guess_pools) next = with_guessed_pools(std::move(next), kFewGuesses, trace);
      if (next.v->exact() && address != kUnknownAddress) {
        next.v->replay->blame(event, recorded.addr[event]);
        next.is_corrected = true;
        return next;
      }
      // The right event, but not the right address? Then the engine has named it.
      const std::optional<Suspect> named = shown_by(next);
      const bool is_new = named && std::find(suspects.begin(), suspects.end(), *named) == suspects.end();
      if (is_new && named->event == event) suspects.insert(suspects.begin() + static_cast<ptrdiff_t>(i) + 1, *named);
      trace->addr.set(event, recorded.addr[event]);
      trace->size.set(event, recorded.size[event]);
    }
    return std::nullopt;
  }

  // Where the engine first went elsewhere: taken at its word.
  static std::optional<Suspect> shown_by(const Attempt& attempt) {
    const std::optional<Difference>& difference = attempt.v->replay->first_difference();
    const bool named =
        difference && difference->engine_address != 0 && difference->event < attempt.v->timeline.trace().size_events();
    return named ? std::optional(Suspect{difference->event, difference->engine_address}) : std::nullopt;
  }

  Attempt try_with(const RuleSet& rules, const std::vector<PoolSpan>& pools,
                   const std::shared_ptr<const Trace>& corrected) {
    Caveats caveats;
    const AllocatorSettings settings = settings_of(snapshot_, device_, options_.conf, rules, guess_, caveats);
    Attempt attempt;
    attempt.v = std::make_unique<Verification>();
    Verification& v = *attempt.v;
    v.timeline = build_timeline(snapshot_, device_,
                                {.round = [&](int64_t request) { return round_size(request, settings, rules); },
                                 .large_page_bytes = settings.large_segment_size_bytes,
                                 .pool_spans = pools,
                                 .keeps_final_blocks = keeps_final_blocks_,
                                 .corrected = corrected},
                                corrected == nullptr ? std::exchange(pairs_, std::nullopt) : std::nullopt);
    v.config = ReplayConfig{.rules = rules, .settings = settings, .limit_bytes = options_.limit_bytes};
    v.config.limit_is_told = options_.limit_bytes.has_value();
    v.caveats = caveats;
    budget_ -= static_cast<int64_t>(v.timeline.trace().size_events()) + kEvenIfShort;
    attempt.pressure = find_pressure(v.timeline, settings, rules);
    v.refused_requests = attempt.pressure.ooms;
    v.refused_by_driver = attempt.pressure.driver_ooms;
    v.config.driver_refuses = attempt.pressure.driver_ooms > 0;
    find_limit(attempt);
    reverse_polls(attempt);
    shorten_ranges(attempt);
    if (!v.replay->first_difference()) settle(attempt);
    return attempt;
  }

  // Up to the first difference: what lies behind it explains nothing.
  void replay(Attempt& attempt, std::optional<int64_t> limit) {
    Verification& v = *attempt.v;
    v.config.limit_bytes = limit;
    v.replay = std::exchange(in_two_, false) ? replay_in_two(v.timeline, v.config) : nullptr;
    if (v.replay == nullptr) {
      v.replay = std::make_unique<ExactReplay>(v.timeline, v.config);
      v.replay->run(kNoEvent, true);
    }
    budget_ -= v.replay->position() + kEvenIfShort;
  }

  // A difference: perhaps completions in front of a release were read the wrong way, most likely the last of them.
  void reverse_polls(Attempt& attempt) {
    constexpr int kMostReversed = 1000;
    constexpr size_t kLastOnes = 3;
    std::vector<uint32_t>& reversed = attempt.v->config.reversed_polls;
    bool went_further = true;
    for (int i = 0; i < kMostReversed && went_further && attempt.v->replay->first_difference(); ++i) {
      const int64_t before = reach(attempt);
      const std::vector<uint32_t> guesses = attempt.v->replay->guessed_polls();
      went_further = false;
      for (size_t back = 1; back <= std::min(kLastOnes, guesses.size()) && !went_further && budget_ > 0; ++back) {
        reversed.push_back(guesses[guesses.size() - back]);
        replay(attempt, attempt.v->config.limit_bytes);
        went_further = reach(attempt) > before;
        if (!went_further) reversed.pop_back();
      }
      if (!went_further && !guesses.empty()) replay(attempt, attempt.v->config.limit_bytes);
    }
  }

  // A difference with expandable segments: perhaps the card, and with it each range, is smaller than their neighbours
  // tell. How far a free block can grow decides which one serves. A range is at least as long as what was mapped of it.
  void shorten_ranges(Attempt& attempt) {
    if (!attempt.v->config.settings.expandable_segments) return;
    constexpr int kMostRounds = 8;
    constexpr int64_t kMostSparePages = 512;
    const int64_t page = attempt.v->config.settings.large_segment_size_bytes;
    bool went_further = true;
    for (int i = 0; i < kMostRounds && went_further && attempt.v->replay->first_difference(); ++i) {
      const int64_t before = reach(attempt);
      const std::optional<int64_t> range = attempt.v->config.range_bytes;
      const int64_t shortest = round_up(longest_mapped_range(attempt.v->replay->allocator()), page);
      went_further = false;
      for (int64_t spare = 0; spare <= kMostSparePages && !went_further && budget_ > 0; spare = spare * 2 + 1) {
        attempt.v->config.range_bytes = shortest + spare * page;
        replay(attempt, attempt.v->config.limit_bytes);
        if (reach(attempt) >= before) reverse_polls(attempt);
        went_further = reach(attempt) > before;
      }
      if (went_further) continue;
      attempt.v->config.range_bytes = range;
      replay(attempt, attempt.v->config.limit_bytes);
    }
  }

  // From its begin to the end of the last page that is mapped.
  static int64_t longest_mapped_range(const CachingAllocator& allocator) {
    int64_t longest = 0;
    for (const Segment* segment : allocator.segments()) {
      if (!segment->is_expandable) continue;
      for (const Block* block = segment->first; block != nullptr; block = block->next) {
        if (!block->mapped) continue;
        longest = std::max(longest, static_cast<int64_t>(block->address - segment->address) + block->size);
      }
    }
    return longest;
  }

  void find_limit(Attempt& attempt) {
    const Pressure& pressure = attempt.pressure;
    if (options_.limit_bytes) return replay(attempt, options_.limit_bytes);
    const bool collects = attempt.v->config.settings.garbage_collection_threshold > 0;
    const bool limited = pressure.smallest_refused && *pressure.smallest_refused > pressure.largest_allowed;
    if (collects && pressure.releases) {
      replay(attempt, std::nullopt);
      if (!is_explained(attempt)) try_collection_limits(attempt);
      return;
    }
    if (limited) {
      replay(attempt, pressure.largest_allowed);
      // It may have been so much higher that nothing was collected.
      if (collects && !is_explained(attempt)) try_collection_limits(attempt);
      return;
    }
    if (!pressure.suspected_retry) return replay(attempt, std::nullopt);
    // Taken only if it explains every burst, or replays further than none does: a program that calls empty_cache looks
    // similar at its peak.
    replay(attempt, pressure.largest_allowed);
    reverse_polls(attempt);
    const ExactReplay& limited_replay = *attempt.v->replay;
    const bool explains = limited_replay.unexplained_releases() == 0 && limited_replay.own_release_bursts() > 0;
    if (explains && !limited_replay.first_difference()) return;
    const int64_t reach_with = reach(attempt);
    const std::vector<uint32_t> reversed = std::exchange(attempt.v->config.reversed_polls, {});
    replay(attempt, std::nullopt);
    reverse_polls(attempt);
    if (reach(attempt) >= reach_with) return;
    attempt.v->config.reversed_polls = reversed;
    replay(attempt, pressure.largest_allowed);
  }

  static bool is_explained(const Attempt& attempt) {
    return !attempt.v->replay->first_difference() && attempt.v->replay->unexplained_releases() == 0;
  }

  void try_collection_limits(Attempt& attempt) {
    const Pressure& pressure = attempt.pressure;
    const double threshold = attempt.v->config.settings.garbage_collection_threshold;
    const int64_t reach_before = reach(attempt);
    const std::optional<int64_t> limit_before = attempt.v->config.limit_bytes;
    LimitRange bounds{.low_bytes = pressure.largest_allowed, .high_bytes = 0};
    // Collection runs above threshold * limit, so somewhere reserved memory was above that.
    constexpr double kMostBytes = double{1LL << 60};
    bounds.high_bytes =
        static_cast<int64_t>(std::min(static_cast<double>(pressure.most_reserved) / threshold, kMostBytes)) +
        (int64_t{1} << 21);
    if (pressure.smallest_refused) bounds.high_bytes = std::min(bounds.high_bytes, *pressure.smallest_refused - 1);
    const FoundLimit found =
        find_collection_limit(bounds, approaches_limits_, [&](int64_t limit) -> std::optional<LimitTry> {
          if (approaches_limits_ && budget_ <= 0) return std::nullopt;
          replay(attempt, limit);
          // Releases that nobody called for and the engine did not make either: collection began too late.
          const std::optional<Difference>& difference = attempt.v->replay->first_difference();
          return LimitTry{.explains = is_explained(attempt),
                          .reach = reach(attempt),
                          .is_too_high = !difference || difference->hint == LimitHint::too_high};
        });
    attempt.collection_range = found.range;
    // The smallest limit explains most refusals by itself. If none explains all, what was tried before may be better.
    replay(attempt, found.limit_bytes);
    if (!found.range && reach(attempt) < reach_before) replay(attempt, limit_before);
  }

  // Replays to the end and compares what is there.
  void settle(Attempt& attempt) {
    if (attempt.settled) return;
    attempt.settled = true;
    Verification& v = *attempt.v;
    v.replay->run();
    v.limit = limit_range(attempt);
    add_caveats(v);
    if (v.config.limit_bytes) drop_caveat("settings-gc-without-limit", v.caveats);
    v.final_state_checked = snapshot_.complete;
    if (!v.final_state_checked) return;
    const std::optional<StateDifference> difference = compare_final_state(snapshot_, device_, v.replay->allocator());
    v.final_state_equal = !difference;
    if (!difference) return;
    Values values = difference->values;
    values.emplace_back("difference", difference->what);
    v.caveats.push_back(
        Caveat{.code = "final-state-differs", .values = std::move(values), .source = CaveatSource::model});
  }

  [[nodiscard]] std::optional<LimitRange> limit_range(const Attempt& attempt) const {
    const Verification& v = *attempt.v;
    if (!v.config.limit_bytes) return std::nullopt;
    if (options_.limit_bytes) return LimitRange{*options_.limit_bytes, *options_.limit_bytes};
    LimitRange range{.low_bytes = attempt.pressure.largest_allowed, .high_bytes = *v.config.limit_bytes};
    if (attempt.collection_range) {
      range.low_bytes = std::max(attempt.collection_range->low_bytes, range.low_bytes);
      range.high_bytes = attempt.collection_range->high_bytes;
    } else if (const std::optional<int64_t> refused = v.replay->allocator().smallest_refused_bytes()) {
      range.high_bytes = std::max(range.low_bytes, *refused - 1);
    }
    return range;
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
    if (snapshot_.events_were_cut() && timeline.starts_mid_life) {
      v.caveats.push_back(Caveat{.code = "start-cut-off", .values = {}, .source = CaveatSource::recording});
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

  static constexpr size_t kFewSuspects = 8;
  static constexpr size_t kManySuspects = 128;
  static constexpr int kFewGuesses = 10;
  static constexpr int kManyGuesses = 1000;
  static constexpr int64_t kEvenIfShort = 4000;  // so that hostile short recordings do not get millions of attempts

  const Snapshot& snapshot_;
  int32_t device_;
  const VerifyOptions& options_;
  bool keeps_final_blocks_ = false;
  std::optional<std::vector<bool>> empties_;  // by stack: does it call empty_cache?
  bool approaches_limits_ = false;            // where differences mislead about a limit: long, so not for guesses
  bool in_two_ = options_.in_two;             // tried once
  std::string_view guess_;                    // settings that are tried, where the file has none
  int64_t budget_ = 40'000'000;               // events that may still be paired and replayed to explain differences
  std::optional<Pairs> pairs_;                // taken by the first try
};

}  // namespace

std::unique_ptr<Verification> verify(const Snapshot& snapshot, int32_t device, const VerifyOptions& options,
                                     std::optional<Pairs> pairs) {
  return Verifier(snapshot, device, options, std::move(pairs)).run();
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
    const bool ends_alike =
        !verification.final_state_checked ||
        !compare_final_state(*verification.timeline.snapshot, verification.timeline.device, replay.allocator());
    if (replay.differences() == 0 && ends_alike) names.push_back(rules.name);
  }
  return names;
}

}  // namespace oomscope
