// Cross-entropy in chunks, or fused with the last projection: logits and what the loss makes of them exist for one
// chunk of rows at a time, in forward and in backward.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

constexpr int64_t kChunks = 8;
constexpr int64_t kWorthIt = 4;  // logits below so many times a layer's output are no matter

Result<Job> chunk(const Job& job) {
  if (training_passes(job).empty()) return does_not_apply("no-backward");
  int64_t logits = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (job.blocks[id].category == Category::logits) logits = std::max(logits, job.size(id));
  }
  if (logits < kWorthIt * 1024 * 1024) return does_not_apply("no-logits");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    const bool is_logits = block.category == Category::logits || job.size(id) == logits || job.size(id) * 2 == logits;
    const bool in_pass = block.phase == Phase::forward || block.phase == Phase::loss || block.phase == Phase::backward;
    if (is_logits && in_pass) editor.resize(id, job.size(id) / kChunks);
  }
  return editor.build();
}

}  // namespace

Measure chunked_cross_entropy() {
  return {.id = "chunked-loss",
          .name = "chunked-loss",
          .remedy = "chunked-loss",
          .group = MeasureGroup::loss,
          .apply = [](const Job& job, int64_t) { return chunk(job); },
          .rank_cost = 1.05};
}

}  // namespace oomscope
