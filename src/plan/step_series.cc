#include "plan/step_series.h"

#include <algorithm>
#include <numeric>

namespace oomscope {
namespace {

class Walk {
 public:
  explicit Walk(const Job& job) : job_(job), live_(job.blocks.size(), false) {}

  void take(uint32_t position) {
    const uint32_t id = job_.requests.id[position];
    const RequestKind kind = job_.requests.kind[position];
    const bool ends = (kind == RequestKind::free || kind == RequestKind::free_held) && live_[id];
    if (kind != RequestKind::malloc && !ends) return;
    const int64_t bytes = ends ? -job_.size(id) : job_.size(id);
    live_[id] = !ends;
    at[static_cast<size_t>(job_.blocks[id].category)] += bytes;
    total += bytes;
  }

  CategoryBytes at{};
  int64_t total = 0;

 private:
  const Job& job_;
  std::vector<bool> live_;
};

// By position: the step of the last request that belongs to one.
std::vector<int> steps_of(const Job& job) {
  std::vector<int> steps(job.requests.kind.size(), 0);
  int step = 0;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (job.requests.kind[i] == RequestKind::malloc) step = std::max(step, job.blocks[job.requests.id[i]].step);
    steps[i] = step;
  }
  return steps;
}

}  // namespace

StepSeries step_series(const Job& job, size_t columns) {
  StepSeries series;
  const std::vector<int> steps = steps_of(job);
  if (steps.empty() || columns == 0) return series;
  Walk search(job);
  int64_t most = -1;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    search.take(i);
    if (search.total > most) most = search.total, series.step = steps[i];
  }
  const size_t begin = static_cast<size_t>(std::lower_bound(steps.begin(), steps.end(), series.step) - steps.begin());
  const size_t end = static_cast<size_t>(std::upper_bound(steps.begin(), steps.end(), series.step) - steps.begin());
  Walk walk(job);
  for (uint32_t i = 0; i < begin; ++i) walk.take(i);
  series.columns.assign(std::min(columns, end - begin), walk.at);
  std::vector<int64_t> highest(series.columns.size(), -1);
  for (size_t i = begin; i < end; ++i) {
    walk.take(static_cast<uint32_t>(i));
    const size_t column = (i - begin) * series.columns.size() / (end - begin);
    if (walk.total <= highest[column]) continue;
    highest[column] = walk.total;
    series.columns[column] = walk.at;
  }
  return series;
}

}  // namespace oomscope
