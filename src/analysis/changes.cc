// The changes: the recording replayed under other settings, the bounds that no setting can beat, and the verdicts.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/why.h"
#include "base/bytes_text.h"
#include "replay/lifetimes.h"

namespace oomscope {
namespace {

// Each verdict walks all allocations; a library that tries a hundred plans is not worth more than this.
constexpr size_t kMostVerdicts = 100;
constexpr int64_t kVerdictBudget = 20'000'000;

Result<std::vector<Verdict>> find_verdicts(const Diagnosis& diagnosis, const RequestStream& requests,
                                           const std::vector<SweepRun>& runs) {
  std::vector<Verdict> verdicts;
  if (!diagnosis.instant.failed) return verdicts;
  const int64_t events = static_cast<int64_t>(requests.kind.size()) + 1;
  const size_t affordable = std::clamp<size_t>(static_cast<size_t>(kVerdictBudget / events), 1, kMostVerdicts);
  const size_t count = requests.failures.size();
  // What a full card had free is known at the last failure alone: earlier ones had another capacity.
  const size_t judged = diagnosis.capacity.is_limit ? affordable : 1;
  for (size_t i = count > judged ? count - judged : 0; i < count; ++i) {
    const RequestStream::Failure& failure = requests.failures[i];
    const FailedRequest failed{.event = failure.event,
                               .size_bytes = failure.size,
                               .failure_index = i,
                               .recorded = true,
                               .try_packing = i + 1 == count};
    OOM_TRY(const Verdict verdict, judge(*diagnosis.verification, failed, diagnosis.capacity, runs));
    verdicts.push_back(verdict);
  }
  return verdicts;
}

// What a setting has to beat: the replay under the recorded settings, and the recording itself, which may have held
// less where it starts in mid-life.
int64_t reserved_to_beat(const Diagnosis& diagnosis, const Changes& changes) {
  return std::min(changes.recorded_reserved_bytes, diagnosis.verification->replay->peak_reserved().bytes);
}

WhatIf question_under(const AllocatorSettings& settings, const Diagnosis& diagnosis, const Changes& changes) {
  return {.rules = diagnosis.verification->config.rules,
          .settings = settings,
          .cap_bytes = changes.cap_bytes,
          .cap_kind = changes.cap_kind};
}

bool knows(const RuleSet& rules, const std::string& conf) {
  if (!rules.large_segment_option && conf.find("large_segment_size_mb") != std::string::npos) return false;
  return parse_allocator_settings(conf, rules.parser).has_value();
}

// Settings that the recording's torch may reject prove nothing about what its user can do.
std::vector<SweepRun> accepted_runs(const Changes& changes) {
  std::vector<SweepRun> runs;
  for (size_t i = 0; i < changes.runs.size(); ++i) {
    if (changes.accepted[i]) runs.push_back(changes.runs[i]);
  }
  return runs;
}

void find_accepted(Changes& changes) {
  changes.accepted.clear();
  for (const SweepRun& run : changes.runs) {
    changes.accepted.push_back(std::all_of(changes.rules.begin(), changes.rules.end(),
                                           [&](const RuleSet& rules) { return knows(rules, run.conf); }));
  }
}

// Of the recorded settings, which are often among the swept ones.
Outcome recorded_outcome(const Diagnosis& diagnosis, const RequestStream& requests, const Changes& changes) {
  const AllocatorSettings& settings = diagnosis.verification->config.settings;
  const auto same = std::find_if(changes.runs.begin(), changes.runs.end(),
                                 [&](const SweepRun& run) { return run.settings == settings; });
  if (same != changes.runs.end()) return same->outcome.main;
  return replay_what_if(requests, question_under(settings, diagnosis, changes));
}

// The best proposals may stand behind the best runs: behind those that repeat each other.
void look_for_ranges_of_proposals(const Diagnosis& diagnosis, const RequestStream& requests, Changes& changes) {
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  for (SweepRun& run : changes.runs) {
    const auto shown = list.begin() + static_cast<std::ptrdiff_t>(std::min(list.size(), kMostProposals));
    if (std::find(list.begin(), shown, &run) == shown) continue;
    look_for_range(requests, question_under(run.settings, diagnosis, changes), run.outcome);
  }
}

// A limit is known only as a range. What does not fit at its low end may fit at its high end: then the settings are
// shown as replayed there, with what they need.
Result<Done> look_at_high_end(const Diagnosis& diagnosis, const RequestStream& requests, SweepOptions options,
                              Changes& changes) {
  const Capacity& capacity = diagnosis.capacity;
  const bool served = std::any_of(changes.runs.begin(), changes.runs.end(),
                                  [](const SweepRun& run) { return run.outcome.main.completed; });
  if (served || capacity.low_bytes == capacity.high_bytes) return Done{};
  options.cap_bytes = capacity.high_bytes;
  std::vector<SweepRun> runs = sweep(requests, diagnosis.verification->config.rules, options);
  if (!runs.front().outcome.main.completed) return Done{};
  changes.runs = std::move(runs);
  find_accepted(changes);
  changes.cap_bytes = capacity.high_bytes;
  changes.at_high_end = true;
  return Done{};
}

Phrase why_phrase(std::string_view key) { return Phrase{.key = "why." + std::string(key)}; }

// Settings as a sentence names them: as they are, but PyTorch's defaults have no text.
Phrase settings_phrase(std::string_view key, const std::string& conf) {
  return conf.empty() ? why_phrase(key).with("conf", why_phrase("defaults")) : why_phrase(key).with("conf", conf);
}

std::string conf_of(const Verdict& verdict) { return verdict.proof == kDefaultsProof ? "" : verdict.proof; }

Phrase failed_sentence(const Diagnosis& diagnosis, const Changes& changes) {
  const Verdict& verdict = changes.verdicts.back();
  if (!changes.runs_prove && verdict.verdict != VerdictKind::unavoidable) return why_phrase("unproven-start");
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  if (changes.at_high_end && verdict.verdict != VerdictKind::unavoidable && !list.empty()) {
    const bool placed = verdict.verdict == VerdictKind::avoidable;
    return settings_phrase(placed ? "open-but-placement" : "open", list.front()->conf)
        .with("needs", format_mib(list.front()->outcome.main.peak_reserved))
        .with("low", format_mib(diagnosis.capacity.low_bytes))
        .with("high", format_mib(diagnosis.capacity.high_bytes));
  }
  switch (verdict.verdict) {
    case VerdictKind::unavoidable: return why_phrase("unavoidable").with("bytes", format_bytes(verdict.bytes));
    case VerdictKind::avoidable:
      if (verdict.proof == kPackingProof) {
        return why_phrase("avoidable-by-placement").with("settings", std::to_string(changes.runs.size()));
      }
      return settings_phrase("avoidable", list.empty() ? conf_of(verdict) : list.front()->conf)
          .with("capacity", format_mib(*changes.cap_bytes));
    case VerdictKind::undecided:
      if (diagnosis.floor_bytes > diagnosis.capacity.high_bytes) return why_phrase("undecided-late-limit");
      return why_phrase("undecided").with("bytes", format_bytes(verdict.bytes));
  }
  return {};
}

constexpr size_t kPageColumns = 80;  // of the step's picture

// Of those that bring something on one card.
const MeasureOutcome* measure_to_draw(const std::vector<MeasureOutcome>& measures) {
  const MeasureOutcome* best = nullptr;
  const auto is_better = [](const MeasureOutcome& a, const MeasureOutcome& b) {
    const bool fits = a.fits == Fits::yes;
    if (fits != (b.fits == Fits::yes)) return fits;
    return fits ? a.measure.rank_cost < b.measure.rank_cost : a.saved_allocated > b.saved_allocated;
  };
  for (const MeasureOutcome& outcome : measures) {
    if (!outcome.refused.empty() || outcome.brings_nothing || outcome.measure.needs_ranks) continue;
    if (best == nullptr || is_better(outcome, *best)) best = &outcome;
  }
  return best;
}

// Each measure costs a change of all requests and a replay.
void try_measures(const Diagnosis& diagnosis, const RequestStream& requests, int threads, Changes& changes) {
  constexpr size_t kMostRequests = 400'000;
  if (requests.kind.size() > kMostRequests) {
    changes.caveats.push_back({.code = "measures-not-tried", .values = {}, .source = CaveatSource::model});
    return;
  }
  const Verification& verification = *diagnosis.verification;
  const Structure structure = find_structure(verification.timeline);
  const Job job = make_job(verification, structure, requests);
  WhatIf question = question_under(verification.config.settings, diagnosis, changes);
  if (diagnosis.instant.failed && (limit_begins(diagnosis) > 0 || !changes.runs_prove)) question.cap_bytes.reset();
  changes.measures_have_cap = question.cap_bytes.has_value();
  changes.measures = evaluate_measures(job, question, {}, threads);
  changes.step = step_series(job, kPageColumns);
  const MeasureOutcome* best = measure_to_draw(changes.measures);
  if (best == nullptr) return;
  const Result<Job> changed = best->measure.apply(job, best->measure.number);
  if (!changed) return;
  changes.step_after = step_series(*changed, kPageColumns);
  changes.step_measure = name_of(best->measure);
}

Phrase peak_sentence(const Diagnosis& diagnosis, const Changes& changes) {
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  const std::string capacity = format_mib(changes.cap_bytes.value_or(0));
  if (!changes.recorded_completes && list.empty()) {
    return why_phrase("nothing-fits").with("capacity", capacity).with("settings", std::to_string(changes.runs.size()));
  }
  if (list.empty()) return why_phrase("already-least");
  const SweepRun& best = *list.front();
  if (!changes.recorded_completes) return settings_phrase("would-fail", best.conf).with("capacity", capacity);
  const int64_t base = reserved_to_beat(diagnosis, changes);
  const int64_t saved = base - best.outcome.main.peak_reserved;
  const bool is_recorded = base == diagnosis.verification->replay->peak_reserved().bytes;
  return settings_phrase(is_recorded ? "reserves-less" : "reserves-less-anew", best.conf)
      .with("base", format_mib(base))
      .with("bytes", format_mib(saved));
}

// Of a run that nothing failed in, but that was under a limit.
void add_limit_caveat(const Diagnosis& diagnosis, Changes& changes) {
  if (diagnosis.instant.failed || !diagnosis.capacity.is_limit || diagnosis.capacity.high_bytes == 0) return;
  const bool is_shaped =
      !changes.cap_bytes && changes.recorded_reserved_bytes > diagnosis.verification->replay->peak_reserved().bytes;
  changes.caveats.push_back(Caveat{.code = is_shaped ? "limit-shaped-the-run" : "limit-was-met",
                                   .values = {{"low", format_bytes(diagnosis.capacity.low_bytes)},
                                              {"high", format_bytes(diagnosis.capacity.high_bytes)}},
                                   .source = CaveatSource::recording});
}

}  // namespace

uint32_t limit_begins(const Diagnosis& diagnosis) {
  const Peak& reserved = diagnosis.verification->replay->peak_reserved();
  return reserved.bytes > diagnosis.capacity.low_bytes ? reserved.event + 1 : 0;
}

std::vector<const SweepRun*> proposals(const Diagnosis& diagnosis, const Changes& changes) {
  std::vector<const SweepRun*> list;
  if (!changes.runs_prove) return list;
  const bool must_fit = diagnosis.instant.failed || !changes.recorded_completes;
  for (size_t i = 0; i < changes.runs.size(); ++i) {
    const SweepRun& run = changes.runs[i];
    const Outcome& outcome = run.outcome.main;
    if (!outcome.completed || !changes.accepted[i]) continue;
    const bool helps = must_fit || outcome.peak_reserved < reserved_to_beat(diagnosis, changes);
    if (!helps || run.settings == diagnosis.verification->config.settings) continue;
    // The same result, or a worse one, by a longer line is no proposal.
    const bool repeats = std::any_of(list.begin(), list.end(), [&](const SweepRun* other) {
      const bool is_same = other->outcome.main.peak_reserved == outcome.peak_reserved;
      return (is_same || !other->conf.empty()) && run.conf.find(other->conf) != std::string::npos;
    });
    if (!repeats) list.push_back(&run);
  }
  return list;
}

std::vector<RuleSet> rules_not_told_apart(const Verification& verification) {
  std::vector<RuleSet> rules = {verification.config.rules};
  if (!verification.exact()) return rules;
  for (std::string_view name : equally_exact_rules(verification)) rules.push_back(*find_rule_set(name));
  return rules;
}

Result<Changes> find_changes(const Diagnosis& diagnosis, const WhyOptions& options) {
  const Verification& verification = *diagnosis.verification;
  Changes changes;
  // A damaged file whose rest is not reproduced proves nothing about other settings.
  const bool is_damaged = !verification.timeline.snapshot->complete && !verification.exact();
  if (verification.timeline.trace().size_events() == 0 || is_damaged) {
    if (options.beside) options.beside();
    return changes;
  }
  if (diagnosis.instant.failed) {
    changes.cap_bytes = diagnosis.capacity.low_bytes;
    changes.cap_kind = diagnosis.capacity.is_limit ? CapKind::limit : CapKind::card;
  } else if (options.cap_bytes) {
    changes.cap_bytes = options.cap_bytes;
  } else if (options.room_bytes) {
    changes.cap_bytes = options.room_bytes;
    changes.cap_kind = CapKind::card;
  }
  const RequestStream requests = requests_of(verification);
  if (requests.from_mid_life) {
    changes.caveats.push_back({.code = "start-allocated-anew", .values = {}, .source = CaveatSource::model});
  }
  if (diagnosis.instant.failed) {
    changes.caveats.push_back({.code = "fits-until-the-failure", .values = {}, .source = CaveatSource::recording});
  }
  const LifetimeTable table = lifetimes_to_complete(verification);
  std::optional<Result<CheckedPacking>> packing;  // as long as some replays, and independent of them
  SweepOptions sweep_options{.cap_bytes = changes.cap_bytes,
                             .cap_kind = changes.cap_kind,
                             .threads = options.threads,
                             .progress = options.progress,
                             .curve_points = options.curve_points,
                             .beside = {[&] { packing = checked_packing(table.rounded); }},
                             .ranges = kMostRuns};
  changes.curve_events = events_of_curve(requests, options.curve_points);
  sweep_options.beside.emplace_back([&] {
    changes.rules = options.rules ? std::vector<RuleSet>{*options.rules} : rules_not_told_apart(verification);
  });
  if (options.beside) sweep_options.beside.push_back(options.beside);
  changes.runs = sweep(requests, verification.config.rules, sweep_options);
  sweep_options.beside.clear();
  find_accepted(changes);
  const Outcome recorded = recorded_outcome(diagnosis, requests, changes);
  changes.recorded_reserved_bytes = recorded.peak_reserved;
  changes.recorded_completes = recorded.completed;
  changes.runs_prove = !diagnosis.instant.failed || fails_as_recorded(requests, recorded);
  add_limit_caveat(diagnosis, changes);
  OOM_TRY(const Floor pages, page_floor_bytes(table.rounded, table.page_bytes));
  changes.page_floor_bytes = pages.bytes;
  if (!*packing) return packing->error();
  changes.packing_bytes = (*packing)->height_bytes;
  OOM_TRY(changes.verdicts,
          find_verdicts(diagnosis, requests, changes.runs_prove ? accepted_runs(changes) : std::vector<SweepRun>()));
  if (diagnosis.instant.failed && changes.runs_prove) {
    OOM_TRY([[maybe_unused]] const Done done, look_at_high_end(diagnosis, requests, sweep_options, changes));
  }
  look_for_ranges_of_proposals(diagnosis, requests, changes);
  try_measures(diagnosis, requests, options.threads, changes);
  add_library_tries(changes.runs, changes.caveats);
  changes.sentence = diagnosis.instant.failed ? failed_sentence(diagnosis, changes) : peak_sentence(diagnosis, changes);
  return changes;
}

}  // namespace oomscope
