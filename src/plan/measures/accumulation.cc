// Micro-batches: the batch in k parts, their gradients summed before the step.
//
//   as recorded    [forward b][backward b: gradients appear][step]
//   in k parts     [forward b/k][backward b/k: gradients appear][forward b/k][backward: new gradients, added at once]..
//
// What grows with the batch shrinks; gradients are there from the second part on while activations are, too, so the
// peak is above that of a run at b/k. Further parts repeat the second, so two are replayed.
#include <unordered_map>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

// Does its size follow the batch? In forward all but library workspaces, in backward what is no gradient.
bool follows_batch(const Job& job, uint32_t id, const std::set<int64_t>& parameters) {
  const JobBlock& block = job.blocks[id];
  if (block.category == Category::workspace || block.category == Category::gradient) return false;
  if (block.phase == Phase::backward) return parameters.count(job.size(id)) == 0;
  return true;
}

// The pass once more behind itself, all that it leaves freed at its end.
void repeat(const Job& job, const JobPass& pass, const std::set<int64_t>& parameters, JobEditor& editor) {
  std::unordered_map<uint32_t, uint32_t> copy;
  std::vector<uint32_t> added;  // gradients that wait for the next request to be summed
  const auto sum_up = [&] {
    for (uint32_t id : added) editor.release(pass.end, id);
    added.clear();
  };
  for (uint32_t i = pass.begin; i < pass.end; ++i) {
    const uint32_t id = job.requests.id[i];
    const RequestKind kind = job.requests.kind[i];
    if (kind == RequestKind::malloc) {
      const bool is_gradient = job.blocks[id].phase == Phase::backward && parameters.count(job.size(id)) != 0;
      if (!is_gradient) sum_up();
      const uint32_t twin = editor.add(editor.size(id), id);
      editor.ask(pass.end, twin);
      if (is_gradient) {
        added.push_back(twin);
      } else {
        copy[id] = twin;
      }
    } else if (kind == RequestKind::free || kind == RequestKind::free_held) {
      const auto twin = copy.find(id);
      if (twin == copy.end()) continue;
      editor.release(pass.end, twin->second);
      copy.erase(twin);
    }
  }
  sum_up();
  for (const auto& [id, twin] : copy) editor.release(pass.end, twin);
}

Result<Job> accumulate(const Job& job, int64_t parts) {
  const std::vector<JobPass> passes = training_passes(job);
  if (passes.empty()) return does_not_apply("no-backward");
  const std::set<int64_t> parameters = parameter_sizes(job);
  if (parameters.empty()) return does_not_apply("no-parameters");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    const bool in_pass = block.pass < job.passes.size() && job.passes[block.pass].has_backward;
    const bool is_data = block.category == Category::input;
    if ((in_pass || is_data) && follows_batch(job, id, parameters)) {
      editor.resize(id, (job.size(id) + parts - 1) / parts);
    }
  }
  for (const JobPass& pass : passes) repeat(job, pass, parameters, editor);
  return editor.build();
}

}  // namespace

Measure accumulate_2() {
  return {.id = "accumulate-2", .remedy = "gradient-accumulation", .group = MeasureGroup::batch,
          .apply = [](const Job& job) { return accumulate(job, 2); }};
}
Measure accumulate_4() {
  return {.id = "accumulate-4", .remedy = "gradient-accumulation", .group = MeasureGroup::batch,
          .apply = [](const Job& job) { return accumulate(job, 4); }};
}
Measure accumulate_8() {
  return {.id = "accumulate-8", .remedy = "gradient-accumulation", .group = MeasureGroup::batch,
          .apply = [](const Job& job) { return accumulate(job, 8); }};
}

}  // namespace oomscope
