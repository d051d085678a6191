// Gradients between steps: freed by zero_grad(set_to_none=True), and as views of DDP's buckets.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

// Gradients that live through a step end before the next pass, and come back with its backward. Micro-batches of one
// step share theirs.
Result<Job> set_to_none(const Job& job) {
  if (training_passes(job).empty()) return does_not_apply("no-backward");
  JobEditor editor(job);
  bool frees = false;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.category != Category::gradient || id == job.failed) continue;
    uint32_t now = id;
    bool is_there = true;
    int step = block.step;
    for (size_t p = 0; p < job.passes.size(); ++p) {
      const JobPass& pass = job.passes[p];
      const bool is_later = pass.begin != kNowhere && (block.made_at == kNowhere || block.made_at < pass.begin);
      if (!is_later || block.freed_at <= pass.forward_end || job.structure->passes[p].step == step) continue;
      step = job.structure->passes[p].step;
      if (is_there && now == id) editor.free_at(id, pass.begin);
      if (is_there && now != id) editor.release(pass.begin, now);
      frees = true;
      is_there = pass.has_backward;
      if (!is_there) continue;
      now = editor.add(job.size(id), id);
      editor.ask(pass.forward_end, now);
    }
    if (is_there && now != id && block.freed_at != kNowhere) editor.release(block.freed_at, now);
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
          .name = "set-to-none",
          .remedy = "set-to-none",
          .group = MeasureGroup::gradients,
          .apply = [](const Job& job, int64_t) { return set_to_none(job); },
          .time_factor = 1.0,
          .rank_cost = 1.0};
}
Measure gradient_bucket_views() {
  return {.id = "bucket-view",
          .name = "bucket-view",
          .remedy = "bucket-view",
          .group = MeasureGroup::gradients,
          .apply = [](const Job& job, int64_t) { return bucket_views(job); },
          .time_factor = 1.0,
          .rank_cost = 1.0};
}

}  // namespace oomscope
