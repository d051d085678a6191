// A picture of memory over one step, stacked by category, before and after measures, with the capacity as a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/step_series.h"
#include "report/drawing.h"
#include "words/words.h"

namespace oomscope {

struct StepPicture {
  StepSeries before;
  std::optional<StepSeries> after;
  std::optional<int64_t> capacity_bytes;
  std::string measure = {};  // what `after` is with; empty: the cheapest set
};
// Side by side on one scale.
[[nodiscard]] Drawing draw(const StepPicture& picture, Language language);

}  // namespace oomscope
