// Note [Ranking sets of measures]
//
// A peak is a maximum over instants, so savings do not add up: checkpointing and a fused optimizer step each bring
// nothing alone where the other's instant is as high. So a job's profile is its most live bytes by phase; each measure
// multiplies the phases by what its own replay showed, and a set's estimate is the largest phase of the product. That
// ranks a hundred thousand sets in milliseconds. It is no proof: the twenty cheapest that may fit are made and replayed
// under the cap, and what does not complete is left out.
#include "plan/advice.h"

#include <algorithm>
#include <array>

#include "replay/parallel.h"

namespace oomscope {
namespace {

constexpr int64_t kUsualMicroBatches = 8;  // more only of a batch that is known to have as many samples
constexpr size_t kConfirmed = 20;
constexpr size_t kEnough = 3;    // sets that fit
constexpr double kSlack = 1.06;  // how far above the cap an estimate may be that is still tried
constexpr double kStep = 0.08;
constexpr double kLeastSlack = 0.8;
constexpr double kSureShare = 0.95;  // of the cap: an estimate below it is taken to fit
constexpr size_t kGroups = static_cast<size_t>(MeasureGroup::mode) + 1;

// Applied in this order: what changes the requests of a pass before what repeats or recomputes them.
constexpr std::array<MeasureGroup, kGroups> kOrder = {
    MeasureGroup::mode,      MeasureGroup::attention,     MeasureGroup::loss,
    MeasureGroup::precision, MeasureGroup::checkpointing, MeasureGroup::batch,
    MeasureGroup::gradients, MeasureGroup::optimizer,     MeasureGroup::sharding};

// Most live bytes while forward and loss, backward, the step, and the rest are running.
using Profile = std::array<double, 4>;

size_t part_of(Phase phase) {
  if (phase == Phase::forward || phase == Phase::loss) return 0;
  if (phase == Phase::backward) return 1;
  return phase == Phase::optimizer_step ? 2 : 3;
}

Profile profile_of(const Job& job) {
  Profile most{};
  double live = 0;
  for (size_t i = 0; i < job.requests.kind.size(); ++i) {
    const uint32_t id = job.requests.id[i];
    const RequestKind kind = job.requests.kind[i];
    if (kind == RequestKind::malloc) live += static_cast<double>(job.size(id));
    if (kind == RequestKind::free || kind == RequestKind::free_held) live -= static_cast<double>(job.size(id));
    double& part = most[part_of(job.phase[i])];
    part = std::max(part, live);
  }
  return most;
}

// A measure with what it makes of each phase; none of a group: null, and ones.
struct Choice {
  const Measure* measure = nullptr;
  Profile factor{1, 1, 1, 1};
};

struct Candidate {
  std::array<const Choice*, kGroups> choices{};  // none: null
  size_t conf = 0;
  double cost = 1;
  double estimate = 0;
  [[nodiscard]] size_t count() const {
    return static_cast<size_t>(
        std::count_if(choices.begin(), choices.end(), [](const Choice* choice) { return choice != nullptr; }));
  }
};

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.count() != b.count()) return a.count() < b.count();
  return a.estimate < b.estimate;
}

class Ranking {
 public:
  // `slack`: estimates up to so many times the cap are kept.
  Ranking(Profile base, double cap, double slack, std::vector<double> overheads)
      : base_(base), cap_(cap), slack_(slack), overheads_(std::move(overheads)) {}

  void run(const std::array<std::vector<Choice>, kGroups>& choices) { extend(choices, 0, base_, Candidate{}); }

  int64_t combinations = 0;
  std::vector<Candidate> best;  // a heap, the worst first

 private:
  void extend(const std::array<std::vector<Choice>, kGroups>& choices, size_t group, const Profile& profile,
              const Candidate& candidate) {
    if (group == kGroups) {
      for (size_t conf = 0; conf < overheads_.size(); ++conf) consider(candidate, profile, conf);
      return;
    }
    for (const Choice& choice : choices[group]) {
      Candidate next = candidate;
      if (choice.measure != nullptr) {
        next.choices[group] = &choice;
        next.cost *= choice.measure->rank_cost;
      }
      Profile product = profile;
      for (size_t i = 0; i < product.size(); ++i) product[i] *= choice.factor[i];
      extend(choices, group + 1, product, next);
    }
  }

  void consider(Candidate candidate, const Profile& profile, size_t conf) {
    ++combinations;
    candidate.conf = conf;
    candidate.estimate = *std::max_element(profile.begin(), profile.end()) * overheads_[conf];
    if (candidate.estimate > cap_ * slack_ || has_surplus(candidate, profile, conf)) return;
    // Settings cost no time, but the recorded ones are no change at all.
    if (conf != 0) candidate.cost *= 1.001;
    best.push_back(candidate);
    std::push_heap(best.begin(), best.end(), is_better);
    if (best.size() <= kConfirmed) return;
    std::pop_heap(best.begin(), best.end(), is_better);
    best.pop_back();
  }

  // Would it surely fit without one of its measures?
  [[nodiscard]] bool has_surplus(const Candidate& candidate, const Profile& profile, size_t conf) const {
    return std::any_of(candidate.choices.begin(), candidate.choices.end(), [&](const Choice* choice) {
      if (choice == nullptr) return false;
      double most = 0;
      for (size_t i = 0; i < profile.size(); ++i) most = std::max(most, profile[i] / choice->factor[i]);
      return most * overheads_[conf] < cap_ * kSureShare;
    });
  }

  Profile base_;
  double cap_;
  double slack_;
  std::vector<double> overheads_;  // reserved over live bytes, by settings
};

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

WhatIf with_share_of_cap(WhatIf question, double share) {
  question.cap_bytes = static_cast<int64_t>(static_cast<double>(*question.cap_bytes) * share);
  return question;
}

// `result` has the outcome without a limit.
void place_under_cap(const RequestStream& requests, const WhatIf& question, MeasureOutcome& result) {
  const double cap = static_cast<double>(*question.cap_bytes);
  const double error = result.measure.error;
  result.capped_reserved = result.outcome.peak_reserved;
  result.fits = Fits::yes;
  if (static_cast<double>(result.outcome.peak_reserved) * (1 + error) <= cap) return;
  result.fits = Fits::no;
  if (static_cast<double>(result.outcome.peak_requested) > cap * (1 + error)) return;
  const OutcomeRange less = replay_range(requests, with_share_of_cap(question, 1 - error));
  result.capped_reserved = less.main.peak_reserved;
  if (less.completed_everywhere) {
    result.fits = Fits::yes;
  } else if (replay_range(requests, with_share_of_cap(question, 1 + error)).completed_somewhere) {
    result.fits = Fits::unknown;
  }
}

// How far the measures together may be off. Settings alone change no request: their replay is as sure as the
// recording's.
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
  std::array<std::vector<Choice>, kGroups> choices;
  for (size_t group = 0; group < kGroups; ++group) {
    choices[group].push_back(Choice{});
    for (const MeasureOutcome& outcome : alone) {
      const Measure& measure = outcome.measure;
      if (measure.group != kOrder[group] || !outcome.refused.empty()) continue;
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
    Ranking ranking(base, static_cast<double>(*question.cap_bytes), slack, overheads);
    ranking.run(choices);
    search.combinations = ranking.combinations;
    std::sort(ranking.best.begin(), ranking.best.end(), is_better);
    std::vector<MeasureSet> sets(ranking.best.size());
    std::vector<char> is_sure(sets.size());  // not bool: written by several threads
    run_parallel(sets.size(), threads, [&](size_t i) {
      sets[i] = set_of(ranking.best[i], known);
      const std::optional<Job> changed = apply_all(job, ranking.best[i]);
      if (!changed) return;
      WhatIf own = question;
      own.settings = settings[ranking.best[i].conf];
      sets[i].outcome = replay_range(changed->requests, with_share_of_cap(own, 1 - error_of(sets[i])));
      is_sure[i] = sets[i].measures.empty() ? fits_in(changed->requests, own) == Fits::yes
                                            : sets[i].outcome.completed_everywhere;
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
