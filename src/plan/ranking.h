// Ranking: which sets of measures may fit, by closed forms alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/job.h"
#include "plan/measures/measure.h"

namespace oomscope {

// Most live bytes while forward and loss, backward, the step, and the rest are running.
using Profile = std::array<double, 4>;
[[nodiscard]] Profile profile_of(const Job& job);

// A measure with what it makes of each phase; none of a group: null, and ones.
struct Choice {
  const Measure* measure = nullptr;
  Profile factor{1, 1, 1, 1};
};

// By the order in which measures are applied: one choice of each is taken.
inline constexpr size_t kMeasureGroups = static_cast<size_t>(MeasureGroup::mode) + 1;
extern const std::array<MeasureGroup, kMeasureGroups> kOrderOfGroups;
using Choices = std::array<std::vector<Choice>, kMeasureGroups>;

struct Candidate {
  std::array<const Choice*, kMeasureGroups> choices{};  // none: null
  size_t conf = 0;                                      // index into RankingQuestion::overheads
  double cost = 1;                                      // product of the measures' cost_of
  double estimate = 0;                                  // peak of reserved bytes
};

struct RankingQuestion {
  Profile base{};
  double cap = 0;
  double slack = 1;               // estimates up to so many times the cap are kept
  std::vector<double> overheads;  // reserved over live bytes, by settings; the first are the recorded ones
};

struct Ranking {
  int64_t combinations = 0;
  std::vector<Candidate> best;  // the cheapest first, at most kMostCandidates
};
inline constexpr size_t kMostCandidates = 20;

// Time of a step with the measure against that without, where it is known; else a class of costs, to rank by alone.
[[nodiscard]] double cost_of(const Measure& measure);

// Pointers into `choices`. Cost: their product.
[[nodiscard]] Ranking rank_sets(const RankingQuestion& question, const Choices& choices);

}  // namespace oomscope
