// What each measure brings alone, by replay; and sets of them: ranked by closed forms (ranking.h), the best replayed.
#include "plan/advice.h"

#include <algorithm>

#include "plan/ranking.h"
#include "replay/parallel.h"

namespace oomscope {
namespace {

constexpr int64_t kUsualMicroBatches = 8;  // more only of a batch that is known to have as many samples
constexpr size_t kEnough = 3;              // sets that fit
constexpr double kSlack = 1.06;            // how far above the cap an estimate may be that is still tried
constexpr double kStep = 0.08;
constexpr double kLeastSlack = 0.8;

bool contains(const MeasureSet& set, const MeasureSet& part) {
  return std::all_of(part.measures.begin(), part.measures.end(), [&](const Measure& measure) {
    return std::any_of(set.measures.begin(), set.measures.end(),
                       [&](const Measure& other) { return other.id == measure.id; });
  });
}

// Does it change what forward and backward ask for, by what their modules are?
bool needs_modules(const Measure& measure) {
  return measure.group != MeasureGroup::optimizer && measure.group != MeasureGroup::gradients &&
         measure.group != MeasureGroup::sharding;
}

std::optional<Job> apply_all(const Job& job, const Candidate& candidate) {
  std::optional<Job> changed = job;
  for (const Choice* choice : candidate.choices) {
    if (choice == nullptr) continue;
    Result<Job> next = choice->measure->apply(*changed, choice->measure->number);
    if (!next) return std::nullopt;
    changed = std::move(*next);
  }
  return changed;
}

MeasureSet set_of(const Candidate& candidate, const std::vector<std::string>& confs) {
  MeasureSet set{.measures = {},
                 .conf = confs[candidate.conf],
                 .outcome = {},
                 .step = {},
                 .cost = candidate.cost,
                 .time_factor = 1.0};
  for (const Choice* choice : candidate.choices) {
    if (choice == nullptr) continue;
    set.measures.push_back(*choice->measure);
    if (set.time_factor && choice->measure->time_factor) {
      *set.time_factor *= *choice->measure->time_factor;
    } else {
      set.time_factor.reset();
    }
  }
  return set;
}

// The cheapest first, and none that only adds to a cheaper one. `conf`: as recorded.
void keep_cheapest(std::vector<MeasureSet>& sets, const std::string& conf) {
  std::stable_sort(sets.begin(), sets.end(), [](const MeasureSet& a, const MeasureSet& b) { return a.cost < b.cost; });
  std::vector<MeasureSet> kept;
  for (MeasureSet& set : sets) {
    const bool adds = std::any_of(kept.begin(), kept.end(), [&](const MeasureSet& cheaper) {
      return (cheaper.conf == conf || cheaper.conf == set.conf) && contains(set, cheaper);
    });
    if (!adds) kept.push_back(std::move(set));
  }
  sets = std::move(kept);
}

// `result` has the outcome without a limit.
void place_under_cap(const RequestStream& requests, const WhatIf& question, MeasureOutcome& result) {
  result.capped_reserved = result.outcome.peak_reserved;
  result.fits = fits_in(requests, question, result.measure.error);
  if (result.fits == Fits::yes && result.outcome.peak_reserved > *question.cap_bytes) {
    result.capped_reserved = replay_what_if(requests, question).peak_reserved;
  }
}

// How far the measures together may be off. Settings alone change no request.
double error_of(const MeasureSet& set) {
  double error = 0;
  for (const Measure& measure : set.measures) error += measure.error;
  return std::min(error, 0.5);
}

}  // namespace

std::vector<MeasureOutcome> evaluate_measures(const Job& job, const WhatIf& question, const JobSetting& setting,
                                              int threads) {
  WhatIf unlimited = question;
  unlimited.cap_bytes.reset();
  const Outcome base = replay_what_if(job.requests, unlimited);
  std::vector<MeasureOutcome> outcomes;
  const bool for_momentum = has_momentum_alone(job);
  for (Measure& measure : all_measures(setting.ranks.value_or(kUsualRanks))) {
    measure.for_momentum = for_momentum;
    outcomes.push_back({.measure = std::move(measure), .refused = {}, .outcome = {}});
  }
  run_parallel(outcomes.size(), threads, [&](size_t i) {
    MeasureOutcome& result = outcomes[i];
    const Measure& measure = result.measure;
    if (job.is_compiled && needs_modules(measure)) {
      result.refused = "compiled";
      return;
    }
    if (measure.group == MeasureGroup::batch && setting.batch && *setting.batch < measure.number) {
      result.refused = "batch-too-small";
      return;
    }
    if (measure.group == MeasureGroup::batch && !setting.batch && measure.number > kUsualMicroBatches) {
      result.refused = "batch-unknown";
      return;
    }
    const Result<Job> changed = measure.apply(job, measure.number);
    if (!changed) {
      result.refused = changed.error().what;
      return;
    }
    result.outcome = replay_what_if(changed->requests, unlimited);
    result.saved_allocated = base.peak_allocated - result.outcome.peak_allocated;
    result.measure.error += static_cast<double>(changed->unsure_bytes) /
                            static_cast<double>(std::max<int64_t>(result.outcome.peak_allocated, 1));
    result.brings_nothing =
        static_cast<double>(result.saved_allocated) < kNothing * static_cast<double>(base.peak_allocated);
    if (question.cap_bytes) place_under_cap(changed->requests, question, result);
  });
  return outcomes;
}

SetSearch find_sets(const Job& job, const WhatIf& question, const std::vector<MeasureOutcome>& alone,
                    const std::vector<std::string>& confs, const JobSetting& setting, int threads) {
  SetSearch search;
  if (!question.cap_bytes) return search;
  const Profile base = profile_of(job);
  Choices choices;
  for (size_t group = 0; group < kMeasureGroups; ++group) {
    choices[group].push_back(Choice{});
    for (const MeasureOutcome& outcome : alone) {
      const Measure& measure = outcome.measure;
      if (measure.group != kOrderOfGroups[group] || !outcome.refused.empty()) continue;
      // Several processes are another set-up: no search puts them in unasked.
      if (measure.needs_ranks && !setting.ranks) continue;
      const Result<Job> changed = measure.apply(job, measure.number);
      if (!changed) continue;
      Choice choice{.measure = &measure, .factor = profile_of(*changed)};
      for (size_t i = 0; i < base.size(); ++i)
        choice.factor[i] = base[i] > 0 && choice.factor[i] > 0 ? choice.factor[i] / base[i] : 1;
      choices[group].push_back(choice);
    }
  }
  std::vector<double> overheads;
  std::vector<AllocatorSettings> settings;
  std::vector<std::string> known;
  for (const std::string& conf : confs) {
    const Result<ParsedSettings> parsed = parse_allocator_settings(conf, question.rules.parser);
    if (!parsed) continue;
    const Outcome outcome =
        replay_what_if(job.requests, {.rules = question.rules, .settings = parsed->settings, .cap_bytes = {}});
    known.push_back(conf);
    settings.push_back(parsed->settings);
    // Under a cap a run gives cached segments back before it fails: half of what it reserves beyond the live bytes.
    const double ratio =
        static_cast<double>(outcome.peak_reserved) / static_cast<double>(std::max<int64_t>(outcome.peak_requested, 1));
    overheads.push_back(1 + (ratio - 1) / 2);
  }
  // Estimates that lie close to the cap may all be wrong by a little: then those farther below it are tried.
  for (double slack = kSlack; slack > kLeastSlack && search.fitting.size() < kEnough; slack -= kStep) {
    const Ranking ranking = rank_sets(
        {.base = base, .cap = static_cast<double>(*question.cap_bytes), .slack = slack, .overheads = overheads},
        choices);
    search.combinations = ranking.combinations;
    std::vector<MeasureSet> sets(ranking.best.size());
    std::vector<char> is_sure(sets.size());  // not bool: written by several threads
    run_parallel(sets.size(), threads, [&](size_t i) {
      sets[i] = set_of(ranking.best[i], known);
      const std::optional<Job> changed = apply_all(job, ranking.best[i]);
      if (!changed) return;
      WhatIf own = question;
      own.settings = settings[ranking.best[i].conf];
      is_sure[i] = surely_fits(changed->requests, own, error_of(sets[i]));
      if (is_sure[i] != 0) sets[i].outcome = replay_range(changed->requests, own);
      sets[i].step = step_series(*changed, kStepColumns);
    });
    search.replayed += static_cast<int64_t>(sets.size());
    for (size_t i = 0; i < sets.size(); ++i) {
      const bool changes_something = !sets[i].measures.empty() || sets[i].conf != known.front();
      if (is_sure[i] != 0 && changes_something) search.fitting.push_back(std::move(sets[i]));
    }
    keep_cheapest(search.fitting, known.front());
  }
  return search;
}

}  // namespace oomscope
