// ZeRO, FSDP and offload: optimizer states (1), gradients (2) and parameters (3) divided among N processes.
//
// Stage 2 and 3 reduce gradients by layers: a whole one exists until it was reduced, then this process's part of it.
// Stage 3 gathers a parameter before it is used; the two largest at a time stand for prefetching. So it
// does where parameters are on the host.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

void gather(const Job& job, JobEditor& editor) {
  for (const JobPass& pass : training_passes(job)) {
    const uint32_t like = job.made_between(pass.begin, pass.end).front();
    const uint32_t gathered = editor.add(2 * largest_parameter(job), like);
    editor.ask(pass.begin, gathered);
    editor.release(pass.end, gathered);
  }
}

Result<Job> shard(const Job& job, int stage, int64_t processes) {
  if (training_passes(job).empty()) return does_not_apply("no-backward");
  JobEditor editor(job);
  const auto part = [&](int64_t bytes) { return (bytes + processes - 1) / processes; };
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
  if (stage >= 3) gather(job, editor);
  return editor.build();
}

// Parameters, gradients and states on the host: each comes for as long as it is used, and the step runs there.
Result<Job> offload(const Job& job) {
  if (training_passes(job).empty()) return does_not_apply("no-backward");
  if (parameter_sizes(job).empty()) return does_not_apply("no-parameters");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    const bool is_gradient = block.category == Category::gradient && block.made_at != kNowhere;
    if (is_gradient) editor.scratch(block.made_at, job.size(id), id);
    const bool is_state = is_optimizer_state(job, id) || is_step_temporary(job, id);
    if (is_gradient || is_state || block.category == Category::parameter) editor.drop(id);
  }
  gather(job, editor);
  return editor.build();
}

}  // namespace

Measure offloaded_parameters() {
  return {.id = "offload-parameters",
          .name = "offload-parameters",
          .remedy = "offload",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job, int64_t) { return offload(job); },
          .rank_cost = 2.8};
}

Measure zero_1(int64_t ranks) {
  return {.id = "zero-1",
          .name = "zero-1",
          .remedy = "sharding",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job, int64_t number) { return shard(job, 1, number); },
          .number = ranks,
          .rank_cost = 3.0,
          .needs_ranks = true};
}
Measure zero_2(int64_t ranks) {
  return {.id = "zero-2",
          .name = "zero-2",
          .remedy = "sharding",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job, int64_t number) { return shard(job, 2, number); },
          .number = ranks,
          .rank_cost = 3.1,
          .needs_ranks = true};
}
Measure zero_3(int64_t ranks) {
  return {.id = "zero-3",
          .name = "zero-3",
          .remedy = "sharding",
          .group = MeasureGroup::sharding,
          .apply = [](const Job& job, int64_t number) { return shard(job, 3, number); },
          .number = ranks,
          .rank_cost = 3.3,
          .needs_ranks = true};
}

}  // namespace oomscope
