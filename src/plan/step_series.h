// Memory over one training step by category, in few enough columns to be drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "model/categories.h"
#include "plan/job.h"

namespace oomscope {

inline constexpr size_t kStepColumns = 160;

struct StepSeries {
  int step = 0;
  std::vector<CategoryBytes> columns;  // requested bytes where most were live in each column's share of the step
};

// Of the step with the most live bytes. Empty for a job without requests.
[[nodiscard]] StepSeries step_series(const Job& job, size_t columns);

}  // namespace oomscope
