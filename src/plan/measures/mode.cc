// Without gradients: nothing is kept for a backward that never comes. A result is freed when the next operation has
// used it, but for the input of a block, which residual connections still need at the block's end.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

// Passes that were never followed by backward. One that a failure ended says nothing of whether it would have come.
std::vector<bool> passes_without_backward(const Job& job) {
  std::vector<bool> chosen;
  for (const JobPass& pass : job.passes)
    chosen.push_back(!pass.has_backward && !(job.ends_in_failure && &pass == &job.passes.back()));
  return chosen;
}

}  // namespace

Result<Job> without_graph(const Job& job, const std::vector<bool>& passes) {
  JobEditor editor(job);
  bool frees = false;
  for (size_t p = 0; p < job.passes.size(); ++p) {
    const JobPass& pass = job.passes[p];
    if (!passes[p] || pass.begin == kNowhere) continue;
    const std::vector<Layer> layers = find_layers(job, pass);
    // What the model returns stays while the program holds it: until the next pass has returned as much.
    const uint32_t replaced = p + 1 < job.passes.size() ? job.passes[p + 1].end : kNowhere;
    std::vector<uint32_t> ids;
    bool returns_logits = false;
    for (uint32_t id : job.made_between(pass.begin, pass.end)) {
      const JobBlock& block = job.blocks[id];
      if (block.freed_at < pass.end || block.category == Category::workspace) continue;
      if (block.category == Category::logits && job.traits(id).has(Trait::linear)) {
        returns_logits = true;
        if (replaced != kNowhere && block.freed_at > replaced) editor.free_at(id, replaced);
      } else {
        ids.push_back(id);
      }
    }
    // The last one is the result, where nothing else is.
    for (size_t i = 0; i + (returns_logits ? 0 : 1) < ids.size(); ++i) {
      // Two requests later: the next operation's result is there, and the one after it shows that it has ended.
      uint32_t end = i + 2 < ids.size() ? job.blocks[ids[i + 2]].made_at : pass.end;
      for (const Layer& layer : layers) {
        if (layer.output == ids[i]) {
          const auto next =
              std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return l.begin >= layer.end; });
          if (next != layers.end()) end = std::max(end, next->end);
        }
      }
      editor.free_at(ids[i], std::min(end, pass.end));
      frees = true;
    }
  }
  if (!frees) return does_not_apply("no-inference");
  return editor.build();
}

Measure without_gradients() {
  return {.id = "no-grad",
          .name = "no-grad",
          .remedy = "no-grad",
          .group = MeasureGroup::mode,
          .apply = [](const Job& job, int64_t) { return without_graph(job, passes_without_backward(job)); },
          .time_factor = 1.0,
          .error = 0.28,
          .rank_cost = 1.0};
}

}  // namespace oomscope
