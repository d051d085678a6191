// scaled_dot_product_attention in place of attention written out: no matrices of length times length, in forward or
// backward, and a few rows of statistics in their place.
#include <algorithm>
#include <map>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

// The size of the scores: what a softmax in an attention function makes, or, where it has no frame of its own, the
// largest size that such functions keep, if it is larger than what projections make.
int64_t score_bytes(const Job& job) {
  int64_t projection = 0;
  std::map<int64_t, int64_t> kept;  // size -> count
  int64_t softmax = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.phase != Phase::forward) continue;
    const StackTraits& traits = job.traits(id);
    if (!traits.has(Trait::attention)) continue;
    if (traits.has(Trait::linear)) {
      projection = std::max(projection, job.size(id));
    } else if (job.is_kept_for_backward(id)) {
      ++kept[job.size(id)];
      if (traits.has(Trait::softmax)) softmax = std::max(softmax, job.size(id));
    }
  }
  if (softmax > 0) return softmax;
  const int64_t largest = kept.empty() ? 0 : kept.rbegin()->first;
  return largest > projection ? largest : 0;
}

Result<Job> fuse(const Job& job) {
  const int64_t scores = score_bytes(job);
  if (scores == 0) return does_not_apply("no-scores");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    const bool is_matrix = job.size(id) == scores || job.size(id) * 2 == scores || job.size(id) * 4 == scores;
    const bool in_forward =
        block.phase == Phase::forward && job.traits(id).has(Trait::attention) && !job.traits(id).has(Trait::linear);
    if (is_matrix && in_forward) editor.drop(id);
    if (job.size(id) == scores && block.phase == Phase::backward) editor.drop(id);
  }
  return editor.build();
}

}  // namespace

Measure fused_attention_kernel() {
  return {.id = "fused-attention",
          .remedy = "fused-attention",
          .group = MeasureGroup::attention,
          .apply = fuse,
          .rank_cost = 0.9};
}

}  // namespace oomscope
