// Measures as a table and as JSON, for `fit` and `why`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/advice.h"
#include "report/document.h"

namespace oomscope {

// Those that bring something by what they save; the others in sentences below.
[[nodiscard]] std::vector<Section> measures_sections(const std::vector<MeasureOutcome>& measures, bool has_cap,
                                                     Language language);
[[nodiscard]] nlohmann::ordered_json measures_json(const std::vector<MeasureOutcome>& measures, bool has_cap,
                                                   std::optional<int64_t> batch);

// The cheapest sets that fit, with lines to paste for the first, in a framework as in Circumstances. `batch`: samples
// of a step, where known.
[[nodiscard]] std::vector<Section> sets_sections(const SetSearch& search, std::string_view framework,
                                                 std::optional<int64_t> batch, Language language);
[[nodiscard]] nlohmann::ordered_json sets_json(const SetSearch& search, std::optional<int64_t> batch);

}  // namespace oomscope
