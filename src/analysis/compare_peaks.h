// Is a run worse than its baseline? Peaks side by side, and first of all what else differs between the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "types/peaks.h"

namespace oomscope {

struct EnvironmentDifference {
  std::string name;
  std::string baseline;  // empty: was not there
  std::string now;
};

struct PeakRow {
  std::string name;  // "all", or a phase
  bool is_reserved = false;
  int64_t baseline_bytes = 0;
  int64_t now_bytes = 0;
  bool is_regression = false;
  [[nodiscard]] int64_t delta() const { return now_bytes - baseline_bytes; }
};

struct PeaksComparison {
  std::vector<EnvironmentDifference> environment;
  std::vector<PeakRow> rows;               // allocated and reserved of the run, then of each phase that both have
  std::vector<std::string> only_baseline;  // phases that one of them lacks
  std::vector<std::string> only_now;
  [[nodiscard]] bool has_regression() const;
};

// How much more is still the same: a per cent of the baseline, and at least two of the allocator's smallest segments,
// since where pages fall can differ from run to run.
struct Tolerance {
  double percent = 2;
  int64_t least_bytes = int64_t{4} << 20;
};

[[nodiscard]] PeaksComparison compare_peaks(const Peaks& baseline, const Peaks& now, const Tolerance& tolerance);

}  // namespace oomscope
