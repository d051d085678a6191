#include "analysis/compare_peaks.h"

#include <algorithm>

namespace oomscope {
namespace {

const std::string* value_of(const Peaks& peaks, const std::string& name) {
  for (const auto& [key, value] : peaks.environment) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::vector<EnvironmentDifference> compare_environment(const Peaks& baseline, const Peaks& now) {
  std::vector<EnvironmentDifference> differences;
  for (const auto& [name, value] : now.environment) {
    const std::string* before = value_of(baseline, name);
    if (before == nullptr || *before != value) {
      differences.push_back({.name = name, .baseline = before == nullptr ? "" : *before, .now = value});
    }
  }
  for (const auto& [name, value] : baseline.environment) {
    if (value_of(now, name) == nullptr) differences.push_back({.name = name, .baseline = value, .now = ""});
  }
  return differences;
}

PeakRow row_of(const std::string& name, bool is_reserved, int64_t baseline, int64_t now, const Tolerance& tolerance) {
  const double allowed =
      std::max(static_cast<double>(baseline) * tolerance.percent / 100, static_cast<double>(tolerance.least_bytes));
  return PeakRow{.name = name,
                 .is_reserved = is_reserved,
                 .baseline_bytes = baseline,
                 .now_bytes = now,
                 .is_regression = static_cast<double>(now) - static_cast<double>(baseline) > allowed};
}

void add_rows(const PhasePeak& baseline, const PhasePeak& now, const Tolerance& tolerance, PeaksComparison& to) {
  to.rows.push_back(row_of(now.name, false, baseline.allocated_bytes, now.allocated_bytes, tolerance));
  to.rows.push_back(row_of(now.name, true, baseline.reserved_bytes, now.reserved_bytes, tolerance));
}

const PhasePeak* phase_of(const Peaks& peaks, const std::string& name) {
  const auto found =
      std::find_if(peaks.phases.begin(), peaks.phases.end(), [&](const PhasePeak& each) { return each.name == name; });
  return found == peaks.phases.end() ? nullptr : &*found;
}

}  // namespace

bool PeaksComparison::has_regression() const {
  return std::any_of(rows.begin(), rows.end(), [](const PeakRow& row) { return row.is_regression; });
}

PeaksComparison compare_peaks(const Peaks& baseline, const Peaks& now, const Tolerance& tolerance) {
  PeaksComparison comparison{
      .environment = compare_environment(baseline, now), .rows = {}, .only_baseline = {}, .only_now = {}};
  add_rows(baseline.all, now.all, tolerance, comparison);
  for (const PhasePeak& phase : now.phases) {
    const PhasePeak* before = phase_of(baseline, phase.name);
    if (before != nullptr) {
      add_rows(*before, phase, tolerance, comparison);
    } else {
      comparison.only_now.push_back(phase.name);
    }
  }
  for (const PhasePeak& phase : baseline.phases) {
    if (phase_of(now, phase.name) == nullptr) comparison.only_baseline.push_back(phase.name);
  }
  return comparison;
}

}  // namespace oomscope
