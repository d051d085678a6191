// Checkpointing: what a layer keeps for backward is freed behind the layer and made anew before its backward.
//
//   forward    [layer 1: keeps | output][layer 2: keeps | output] ...
//   backward   ... [layer 2 again: keeps][its backward, frees them][layer 1 again: keeps][its backward]
//
// Layers are found by the lines that come back (find_layers). A layer's output stays, being the next one's input.
// Selective: by bytes per recomputed operation. A projection, a convolution or attention costs as much as many passes
// over memory, so its result brings little for that; so do statistics, which are small. Both stay.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/source_path.h"
#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

struct Choice {
  size_t every = 1;
  bool cheap_only = false;
};

bool is_dear(const Job& job, uint32_t id) {
  const StackTraits& traits = job.traits(id);
  return traits.has(Trait::linear) || traits.has(Trait::convolution) || traits.has(Trait::attention);
}

// Bytes that recomputing it frees, for each pass over memory that it costs.
int64_t worth_of(const Job& job, uint32_t id) {
  constexpr int64_t kPassesOfDear = 16;
  return is_dear(job, id) ? job.size(id) / kPassesOfDear : job.size(id);
}

constexpr int64_t kWorthwhile = 8;  // at least such a part of the best

// transformers keeps keys and values of each layer in training, too (use_cache), but not under checkpointing.
bool is_cache(const Job& job, uint32_t id) { return path_ends_with(job.file_of(id), "transformers/cache_utils.py"); }

// Where the layer's backward begins: at the last request before one of its kept blocks is freed.
uint32_t backward_of(const Job& job, const std::vector<uint32_t>& kept) {
  uint32_t first = kNowhere;
  for (uint32_t id : kept) first = std::min(first, job.blocks[id].freed_at);
  if (first == kNowhere) return kNowhere;
  while (first > 0 && job.requests.kind[first] != RequestKind::malloc) --first;
  return first;
}

// `is_cut`: a failure ended the pass, so what was never freed may have waited for its backward.
void checkpoint_layer(const Job& job, const Layer& layer, bool cheap_only, bool is_cut, JobEditor& editor) {
  std::vector<uint32_t> kept;
  for (uint32_t id : job.made_between(layer.begin, layer.end)) {
    if (id == layer.output || !job.is_kept_for_backward(id)) continue;
    if (is_cache(job, id)) {
      editor.drop(id);
      continue;
    }
    if (job.blocks[id].freed_at == kNowhere && !is_cut) continue;  // not backward's
    if (job.blocks[id].category != Category::workspace) kept.push_back(id);
  }
  if (cheap_only) {
    int64_t best = 0;
    for (uint32_t id : kept) best = std::max(best, worth_of(job, id));
    std::erase_if(kept, [&](uint32_t id) { return worth_of(job, id) * kWorthwhile < best; });
  }
  const uint32_t again = backward_of(job, kept);
  const std::unordered_set<uint32_t> is_among_kept(kept.begin(), kept.end());
  for (uint32_t id : kept) editor.free_at(id, layer.end);
  if (kept.empty() || again == kNowhere) return;
  // Forward once more: with its temporaries, but for what stayed.
  std::unordered_map<uint32_t, uint32_t> twins;
  for (uint32_t i = layer.begin; i < layer.end; ++i) {
    const uint32_t id = job.requests.id[i];
    if (job.requests.kind[i] == RequestKind::malloc) {
      const bool is_kept = is_among_kept.count(id) != 0;
      if (!is_kept && job.blocks[id].freed_at >= layer.end) continue;
      const uint32_t twin = editor.add(editor.size(id), id);
      editor.added(twin).phase = Phase::backward;
      editor.added(twin).reason = CategoryReason::recomputed;
      editor.ask(again, twin);
      if (!is_kept) {
        twins[id] = twin;
      } else if (job.blocks[id].freed_at != kNowhere) {
        editor.release(job.blocks[id].freed_at + 1, twin);
      }
    } else if (const auto twin = twins.find(id); job.blocks[id].freed_at == i && twin != twins.end()) {
      editor.release(again, twin->second);
      twins.erase(twin);
    }
  }
  for (const auto& [id, twin] : twins) editor.release(again, twin);
}

Result<Job> checkpoint(const Job& job, const Choice& choice) {
  const std::vector<JobPass> passes = training_passes(job);
  if (passes.empty()) return does_not_apply("no-backward");
  const bool recomputes = std::any_of(job.blocks.begin(), job.blocks.end(),
                                      [](const JobBlock& block) { return block.reason == CategoryReason::recomputed; });
  if (recomputes) return does_not_apply("already-checkpointed");
  JobEditor editor(job);
  bool found = false;
  for (const JobPass& pass : passes) {
    const std::vector<Layer> layers = find_layers(job, pass);
    for (size_t i = 0; i < layers.size(); ++i) {
      if (i % choice.every != 0) continue;
      const bool is_cut = job.ends_in_failure && pass.end == job.passes.back().end;
      checkpoint_layer(job, layers[i], choice.cheap_only, is_cut, editor);
      found = true;
    }
  }
  if (!found) return does_not_apply("no-layers");
  return editor.build();
}

// Forward is a third of a step's arithmetic, and the parts of it that are done again come on top.
constexpr double kForwardShare = 0.25;

}  // namespace

Measure checkpoint_all() {
  return {.id = "checkpointing",
          .name = "checkpointing",
          .remedy = "checkpointing",
          .group = MeasureGroup::checkpointing,
          .apply = [](const Job& job, int64_t) { return checkpoint(job, {}); },
          .time_factor = 1 + kForwardShare,
          .rank_cost = 1.25};
}
Measure checkpoint_every(int64_t nth) {
  const double factor = 1 + kForwardShare / static_cast<double>(nth);
  return {.id = fmt::format("checkpointing-every-{}{}", nth,
                            nth == 2   ? "nd"
                            : nth == 3 ? "rd"
                                       : "th"),
          .name = "checkpointing-every",
          .remedy = "checkpointing",
          .group = MeasureGroup::checkpointing,
          .apply = [](const Job& job,
                      int64_t n) { return checkpoint(job, {.every = static_cast<size_t>(n), .cheap_only = false}); },
          .number = nth,
          .time_factor = factor,
          .rank_cost = factor};
}
Measure checkpoint_selective() {
  return {.id = "checkpointing-selective",
          .name = "checkpointing-selective",
          .remedy = "checkpointing",
          .group = MeasureGroup::checkpointing,
          .apply = [](const Job& job, int64_t) { return checkpoint(job, {.every = 1, .cheap_only = true}); },
          .time_factor = 1.08,
          .rank_cost = 1.08};
}

}  // namespace oomscope
