// ZeRO and FSDP: optimizer states (1), gradients (2) and parameters (3) divided among N processes, here eight.
//
// Stage 2 and 3 reduce gradients by layers: a whole one exists until it was reduced, then this process's part of it.
// Stage 3 gathers a parameter before it is used; the two largest at a time stand for prefetching.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

constexpr int64_t kProcesses = 8;

Result<Job> shard(const Job& job, int stage) {
  if (training_passes(job).empty()) return does_not_apply("no-backward");
  JobEditor editor(job);
  const auto part = [](int64_t bytes) { return (bytes + kProcesses - 1) / kProcesses; };
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (is_optimizer_state(job, id) || is_step_temporary(job, id)) editor.resize(id, part(job.size(id)));
    const bool is_gradient = block.category == Category::gradient && block.made_at != kNowhere;
    if (stage >= 2 && is_gradient) {
      editor.resize(id, part(job.size(id)));
      editor.scratch(block.made_at, job.size(id), id);
    }
    if (stage >= 3 && block.category == Category::parameter) editor.resize(id, part(job.size(id)));
  }
  if (stage >= 3) {
    for (const JobPass& pass : training_passes(job)) {
      const uint32_t like = job.made_between(pass.begin, pass.end).front();
      const uint32_t gathered = editor.add(2 * largest_parameter(job), like);
      editor.ask(pass.begin, gathered);
      editor.release(pass.end, gathered);
    }
  }
  return editor.build();
}

}  // namespace

Measure zero_1() {
  return {.id = "zero-1",
          .remedy = "sharding",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job) { return shard(job, 1); },
          .rank_cost = 3.0};
}
Measure zero_2() {
  return {.id = "zero-2",
          .remedy = "sharding",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job) { return shard(job, 2); },
          .rank_cost = 3.1};
}
Measure zero_3() {
  return {.id = "zero-3",
          .remedy = "sharding",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job) { return shard(job, 3); },
          .rank_cost = 3.3};
}

}  // namespace oomscope
