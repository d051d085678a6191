// Without gradients: nothing is kept for a backward that never comes. A result is freed when the next operation has
// used it, but for what the program still holds or needs:
//
//   the input of a block    until the sum at the block's end: sums are made in a model's own forward, not in torch's
//   a feature map           that is joined to a later one (a result as large as the two together): until the model
//                           returns, for it is a variable of its forward
//   logits, keys, values    of what a pass returns, until the next pass has returned as much
//   the input               until the next one is there: without a graph nothing else holds it
#include <algorithm>
#include <map>

#include "base/source_path.h"
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

// Made by a module of the model's own, outside of torch: a sum, a product, a join.
bool is_own_operation(const Job& job, uint32_t id) {
  return job.function_of(id) == "forward" && !path_has(job.file_of(id), "torch/nn/");
}

// Keys and values that generation would need again; the result of a pass holds them.
bool is_cached(const Job& job, uint32_t id) {
  return job.function_of(id) == "update" && job.file_of(id).ends_with("cache_utils.py");
}

// Inputs that a graph held beyond the next one.
void free_inputs(const Job& job, JobEditor& editor) {
  std::map<int64_t, uint32_t> before;  // by size
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.category != Category::input || block.made_at == kNowhere || block.pass >= job.passes.size()) continue;
    const auto [last, is_first] = before.try_emplace(job.size(id), id);
    if (is_first) continue;
    const JobBlock& old = job.blocks[last->second];
    const bool is_next = old.pass + 1 == block.pass;
    const bool outlives = old.freed_at > block.made_at + 1 && !job.passes[old.pass].has_backward;
    if (is_next && outlives) editor.free_at(last->second, block.made_at + 1);
    last->second = id;
  }
}

// By allocation: the position of a later operation that needs it, beyond the next one.
std::map<uint32_t, uint32_t> needed_until(const Job& job, const std::vector<uint32_t>& ids) {
  constexpr int64_t kLeastBytes = 64 * 1024;  // less cannot move a peak
  constexpr size_t kBlock = 40;               // requests of a block, at most
  std::map<uint32_t, uint32_t> until;
  std::map<int64_t, size_t>
      stream;  // by size: the first of it, then the last that the model made itself; index into ids
  std::map<int64_t, uint32_t> maps;  // by size: the last that was not joined, but for the one just before
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t bytes = job.size(ids[i]);
    bool joins = false;
    if (bytes >= kLeastBytes && is_own_operation(job, ids[i])) {
      const auto addend = stream.find(bytes);
      const auto joined = i > 0 ? maps.find(bytes - job.size(ids[i - 1])) : maps.end();
      joins = addend == stream.end() && joined != maps.end();
      if (addend != stream.end() && i - addend->second < kBlock)
        until[ids[addend->second]] = job.blocks[ids[i]].made_at;
      if (joins) until[joined->second] = job.blocks[ids.back()].made_at;  // a variable of the model's forward
      stream[bytes] = i;
    }
    stream.emplace(bytes, i);
    if (i > 0 && !joins) maps[job.size(ids[i - 1])] = ids[i - 1];
  }
  return until;
}

}  // namespace

Result<Job> without_graph(const Job& job, const std::vector<bool>& passes) {
  JobEditor editor(job);
  bool frees = false;
  int64_t joined = 0;  // bytes of feature maps that the model may let go of sooner
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
      const bool are_logits = block.category == Category::logits && job.traits(id).has(Trait::linear);
      if (are_logits || is_cached(job, id)) {
        returns_logits = returns_logits || are_logits;
        if (replaced != kNowhere && block.freed_at > replaced) editor.free_at(id, replaced);
      } else {
        ids.push_back(id);
      }
    }
    const std::vector<uint32_t> made = job.made_between(pass.begin, pass.end);
    const std::map<uint32_t, uint32_t> until = needed_until(job, made);
    const uint32_t last_made = made.empty() ? kNowhere : job.blocks[made.back()].made_at;
    int64_t of_pass = 0;
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
      const auto needed = until.find(ids[i]);
      if (needed != until.end()) {
        end = std::max(end, needed->second);
        if (needed->second == last_made) of_pass += job.size(ids[i]);
      }
      editor.free_at(ids[i], std::min(end, pass.end));
      frees = true;
    }
    joined = std::max(joined, of_pass);
  }
  if (!frees) return does_not_apply("no-inference");
  free_inputs(job, editor);
  editor.assume(joined);
  return editor.build();
}

Measure without_gradients() {
  return {.id = "no-grad",
          .name = "no-grad",
          .remedy = "no-grad",
          .group = MeasureGroup::mode,
          .apply = [](const Job& job, int64_t) { return without_graph(job, passes_without_backward(job)); },
          .time_factor = 1.0,
          .error = 0.08,
          .rank_cost = 1.0};
}

}  // namespace oomscope
