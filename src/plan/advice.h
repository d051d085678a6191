// Advice: what each measure brings to a job, and the cheapest sets of them that fit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/fit.h"
#include "plan/job.h"
#include "plan/measures/measure.h"
#include "plan/step_series.h"
#include "replay/what_if.h"

namespace oomscope {

// Savings below this share of the peak are none: where another instant is the peak, a measure does not help.
inline constexpr double kNothing = 0.03;

inline constexpr int64_t kUsualRanks = 8;

// What is known of how the job is run.
struct JobSetting {
  std::optional<int64_t> ranks;  // processes that it may be divided over; empty: one, and what the usual number brings
  std::optional<int64_t> batch;  // samples
};

struct MeasureOutcome {
  Measure measure;
  std::string refused;          // why it cannot be applied, a key's last part; empty: replayed
  Outcome outcome;              // without a limit
  Fits fits = Fits::unknown;    // under the cap, where there is one; fits_in with the measure's error
  int64_t capped_reserved = 0;  // peak under that cap, where it fits
  int64_t saved_allocated = 0;  // of the peak; negative: it needs more
  bool brings_nothing = false;
};

// All measures, each alone, in the order of the list. `question` with the cap, if there is one.
[[nodiscard]] std::vector<MeasureOutcome> evaluate_measures(const Job& job, const WhatIf& question,
                                                            const JobSetting& setting, int threads);

// Measures taken together, in the order in which they are applied.
struct MeasureSet {
  std::vector<Measure> measures;
  std::string conf;      // allocator settings
  OutcomeRange outcome;  // under the cap
  StepSeries step;       // one step of it
  double cost = 1;       // product of the measures' cost_of
  std::optional<double> time_factor;
};

struct SetSearch {
  int64_t combinations = 0;  // ranked by closed forms
  int64_t replayed = 0;
  std::vector<MeasureSet> fitting;  // the cheapest in time first, all confirmed by replay
};

// The cheapest sets that fit question.cap_bytes. `alone`: of evaluate_measures. `confs`: settings to combine with.
[[nodiscard]] SetSearch find_sets(const Job& job, const WhatIf& question, const std::vector<MeasureOutcome>& alone,
                                  const std::vector<std::string>& confs, const JobSetting& setting, int threads);

}  // namespace oomscope
