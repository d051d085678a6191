// `baseline` as documents: what was saved, what is there, and how a run compares; and the comparison as JUnit XML.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/compare_peaks.h"
#include "report/document.h"
#include "words/words.h"

namespace oomscope {

// One row of the store.
struct BaselineEntry {
  std::string project;
  std::string name;
  std::string configuration;  // hash of command and settings
  int64_t saved_at_s = 0;     // Unix time
  Peaks peaks;
};

[[nodiscard]] Document saved_document(const BaselineEntry& entry, Language language);
// Newest first, as given.
[[nodiscard]] Document list_document(const std::vector<BaselineEntry>& entries, Language language);
[[nodiscard]] Document comparison_document(const BaselineEntry& baseline, const Peaks& now,
                                           const PeaksComparison& comparison, Language language);

// One test case a row; a regression is a failure. Names are English.
[[nodiscard]] std::string comparison_junit(const BaselineEntry& baseline, const PeaksComparison& comparison);

}  // namespace oomscope
