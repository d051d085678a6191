// Gradients between steps: freed by zero_grad(set_to_none=True), and as views of DDP's buckets.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

// Gradients that live through a step end there, and come back in the next backward.
Result<Job> set_to_none(const Job& job) {
  const std::vector<JobPass> passes = training_passes(job);
  if (passes.empty()) return does_not_apply("no-backward");
  JobEditor editor(job);
  bool frees = false;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.category != Category::gradient || block.phase != Phase::backward || block.pass >= job.passes.size())
      continue;
    for (size_t i = 0; i + 1 < passes.size(); ++i) {
      const bool lives_on = block.made_at < passes[i].end && block.freed_at > passes[i + 1].forward_end;
      if (!lives_on) continue;
      if (!frees || !editor.is_dropped(id)) editor.free_at(id, passes[i + 1].begin);
      frees = true;
      break;
    }
  }
  if (!frees) return does_not_apply("already-none");
  return editor.build();
}

Result<Job> bucket_views(const Job& job) {
  int64_t buckets = 0;
  int64_t gradients = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const bool lasts = job.blocks[id].freed_at == kNowhere;
    if (job.blocks[id].category == Category::communication && lasts) buckets += job.size(id);
    if (job.blocks[id].category == Category::gradient && job.blocks[id].step <= 1) gradients += job.size(id);
  }
  if (buckets == 0 || buckets < gradients / 2) return does_not_apply("no-buckets");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    // The first step still makes its own.
    if (job.blocks[id].category == Category::gradient && job.blocks[id].step > 1) editor.drop(id);
  }
  return editor.build();
}

}  // namespace

Measure gradients_set_to_none() {
  return {.id = "set-to-none",
          .remedy = "set-to-none",
          .group = MeasureGroup::gradients,
          .apply = set_to_none,
          .time_factor = 1.0,
          .rank_cost = 1.0};
}
Measure gradient_bucket_views() {
  return {.id = "bucket-view",
          .remedy = "bucket-view",
          .group = MeasureGroup::gradients,
          .apply = bucket_views,
          .time_factor = 1.0,
          .rank_cost = 1.0};
}

}  // namespace oomscope
