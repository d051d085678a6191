// Micro-batches: the batch in k parts, their gradients summed before the step.
//
//   as recorded    [forward b][backward b: gradients appear][step]
//   in k parts     [forward b/k][backward b/k: gradients appear][forward b/k][backward: new gradients, added at once]..
//
// What grows with the batch shrinks; gradients are there from the second part on while activations are, too, so the
// peak is above that of a run at b/k. Further parts repeat the second, so two are replayed.
#include <algorithm>
#include <unordered_map>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

// A workspace that a library makes when it is first used, and keeps.
bool is_kept_by_library(const JobBlock& block) {
  return block.category == Category::workspace && block.freed_at == kNowhere;
}

// Does its size follow the batch? What passes make does, but for library workspaces and what backward makes of a
// parameter's size; and what was made for them.
bool follows_batch(const Job& job, uint32_t id, const std::set<int64_t>& parameters) {
  const JobBlock& block = job.blocks[id];
  switch (block.category) {
    case Category::gradient:
    case Category::parameter:
    case Category::optimizer_state: return false;
    case Category::workspace:
      if (is_kept_by_library(block) && id != job.failed) return false;
      break;
    case Category::input:
    case Category::activation:
    case Category::logits: return true;
    default: break;
  }
  if (block.pass >= job.passes.size()) return false;
  return block.phase != Phase::backward || parameters.count(job.size(id)) == 0;
}

// Blocks that are freed right behind the pass, before anything else is made: they end before the next part begins. If
// they are the gradients, the step needed no memory and they were cleared; then they stay.
std::vector<uint32_t> freed_behind(const Job& job, const JobPass& pass, const std::set<int64_t>& parameters) {
  std::vector<uint32_t> ids;
  size_t like_parameters = 0;
  for (uint32_t i = pass.end; i < job.requests.kind.size() && job.requests.kind[i] != RequestKind::malloc; ++i) {
    const uint32_t id = job.requests.id[i];
    const JobBlock& block = job.blocks[id];
    if (block.freed_at != i || block.made_at < pass.begin || block.made_at >= pass.end) continue;
    like_parameters += parameters.count(job.size(id));
    ids.push_back(id);
  }
  constexpr size_t kTied = 4;  // weights that two layers share
  return like_parameters > kTied ? std::vector<uint32_t>{} : ids;
}

// The pass once more behind itself. What its forward leaves (the loss, the logits) is replaced by the second one's.
void repeat(const Job& job, const JobPass& pass, const std::set<int64_t>& parameters, JobEditor& editor) {
  for (uint32_t id : freed_behind(job, pass, parameters)) editor.free_at(id, pass.end);
  std::unordered_map<uint32_t, uint32_t> copy;
  std::vector<uint32_t> left;   // by the first forward
  std::vector<uint32_t> added;  // gradients that wait for the next request to be summed
  const auto sum_up = [&] {
    for (uint32_t id : added) editor.release(pass.end, id);
    added.clear();
  };
  for (uint32_t i = pass.begin; i < pass.end; ++i) {
    const uint32_t id = job.requests.id[i];
    const RequestKind kind = job.requests.kind[i];
    if (i == pass.forward_end) {
      for (uint32_t old : left) editor.free_at(old, pass.end);
    }
    if (kind == RequestKind::malloc) {
      const JobBlock& block = job.blocks[id];
      if (is_kept_by_library(block)) continue;
      const bool is_gradient = block.phase == Phase::backward && parameters.count(job.size(id)) != 0;
      if (!is_gradient) sum_up();
      const uint32_t twin = editor.add(editor.size(id), id);
      editor.ask(pass.end, twin);
      if (is_gradient) {
        added.push_back(twin);
      } else {
        copy[id] = twin;
        const bool is_left = block.freed_at >= pass.end && block.phase != Phase::backward;
        if (is_left && !editor.is_refreed(id)) left.push_back(id);
      }
    } else if (kind == RequestKind::free || kind == RequestKind::free_held) {
      const auto twin = copy.find(id);
      if (twin == copy.end()) continue;
      editor.release(pass.end, twin->second);
      copy.erase(twin);
    }
  }
  sum_up();
  for (const auto& [id, twin] : copy) {
    const bool is_replaced = std::find(left.begin(), left.end(), id) != left.end();
    const uint32_t freed_at = is_replaced ? job.blocks[id].freed_at : pass.end;
    if (freed_at != kNowhere) editor.release(freed_at, twin);
  }
}

// One gradient a parameter, but where the pass begins with gradients anyway.
void hold_gradients(const Job& job, const JobPass& pass, JobEditor& editor) {
  int64_t held = 0;
  for (const JobBlock& block : job.blocks) {
    const bool is_there = block.made_at < pass.begin && block.freed_at > pass.begin;
    held += block.category == Category::gradient && is_there ? 1 : 0;
  }
  if (held > 0) return;
  const uint32_t like = job.requests.id[pass.begin];
  for (uint32_t id : trained_parameters(job)) editor.ask(pass.begin, editor.add(job.size(id), like));
}

Result<Job> accumulate(const Job& job, int64_t parts) {
  const std::vector<JobPass> passes = training_passes(job);
  if (passes.empty()) return does_not_apply("no-backward");
  const std::set<int64_t> parameters = parameter_sizes(job);
  if (parameters.empty()) return does_not_apply("no-parameters");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    const bool evaluates = block.pass < job.passes.size() && !job.passes[block.pass].has_backward;
    if (!evaluates && follows_batch(job, id, parameters)) editor.resize(id, (job.size(id) + parts - 1) / parts);
  }
  for (const JobPass& pass : passes) {
    // A failure ends the recording, not the job: further parts would run beside the gradients of the first.
    const bool is_cut = job.ends_in_failure && pass.end == job.passes.back().end;
    if (is_cut) {
      hold_gradients(job, pass, editor);
    } else {
      repeat(job, pass, parameters, editor);
    }
  }
  return editor.build();
}

}  // namespace

Job with_smaller_batch(const Job& job, double by, uint32_t from_event) {
  const std::set<int64_t> parameters = parameter_sizes(job);
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const uint32_t begin = job.requests.begin[id] == kNoEvent ? 0 : job.requests.begin[id];
    if (begin < from_event || !follows_batch(job, id, parameters)) continue;
    editor.resize(id, std::max<int64_t>(static_cast<int64_t>(static_cast<double>(job.size(id)) / by), 1));
  }
  return editor.build();
}

// A part costs little more than its share of the time, but small kernels keep a card less busy.
Measure accumulation(int64_t parts) {
  return {.id = "accumulate-" + std::to_string(parts),
          .name = "accumulate",
          .remedy = "gradient-accumulation",
          .group = MeasureGroup::batch,
          .apply = accumulate,
          .number = parts,
          .error = 0.06,
          .rank_cost = 1 + 0.05 * static_cast<double>(parts)};
}

}  // namespace oomscope
