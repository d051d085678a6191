// Other optimizers: what the step makes for a moment, and the state between steps.
#include <algorithm>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

bool has_step(const Job& job) {
  return std::any_of(job.blocks.begin(), job.blocks.end(),
                     [](const JobBlock& block) { return block.phase == Phase::optimizer_step; });
}

void drop_step_temporaries(const Job& job, JobEditor& editor) {
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (is_step_temporary(job, id)) editor.drop(id);
  }
}

Result<Job> fused(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  JobEditor editor(job);
  drop_step_temporaries(job, editor);
  return editor.build();
}

// One parameter after the other: twice its size for a moment, as Adam's single-tensor step makes (sqrt, then add).
Result<Job> one_by_one(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  JobEditor editor(job);
  drop_step_temporaries(job, editor);
  int step = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (!is_step_temporary(job, id) || job.blocks[id].step == step) continue;
    step = job.blocks[id].step;
    editor.scratch(job.blocks[id].made_at, 2 * largest_parameter(job), id);
  }
  return editor.build();
}

// SGD with momentum keeps one tensor a parameter where Adam keeps two: those of the first line that makes state stay.
Result<Job> sgd_momentum(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  StackId kept = StackId::none;
  JobEditor editor(job);
  bool drops = false;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (!is_optimizer_state(job, id)) continue;
    if (kept == StackId::none) kept = job.blocks[id].stack;
    if (job.blocks[id].stack == kept) continue;
    editor.drop(id);
    drops = true;
  }
  if (!drops) return does_not_apply("one-state");
  drop_step_temporaries(job, editor);
  return editor.build();
}

Result<Job> sgd_plain(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (is_optimizer_state(job, id)) editor.drop(id);
  }
  drop_step_temporaries(job, editor);
  return editor.build();
}

// bitsandbytes: one byte an element and four a block of 256, tensors below 4096 elements stay as they are.
Result<Job> eight_bit(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  constexpr int64_t kElementBytes = 4;
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const int64_t elements = job.size(id) / kElementBytes;
    if (is_optimizer_state(job, id) && elements >= 4096) editor.resize(id, elements + elements / 64);
  }
  drop_step_temporaries(job, editor);
  return editor.build();
}

// torch.optim.Adafactor keeps a row and a column of each matrix; no shape is recorded, so they are taken as square.
// The step makes the update of one parameter at a time.
Result<Job> adafactor(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  JobEditor editor(job);
  StackId kept = StackId::none;
  int step = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (is_step_temporary(job, id)) {
      editor.drop(id);
      if (job.blocks[id].step != step) editor.scratch(job.blocks[id].made_at, 2 * largest_parameter(job), id);
      step = job.blocks[id].step;
    }
    if (!is_optimizer_state(job, id)) continue;
    if (kept == StackId::none) kept = job.blocks[id].stack;
    if (job.blocks[id].stack != kept) {
      editor.drop(id);
    } else {
      int64_t side = 1;
      while (side * side < job.size(id) / 4) side *= 2;
      editor.resize(id, 8 * side);
    }
  }
  return editor.build();
}

// States on the host: the step runs there, or they come and go one parameter at a time.
Result<Job> offload_optimizer(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  return sgd_plain(job);
}

}  // namespace

Measure fused_step() {
  return {.id = "fused-optimizer",
          .remedy = "fused-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = fused,
          .time_factor = 1.0,
          .rank_cost = 1.0};
}
Measure single_tensor_step() {
  return {.id = "foreach-off",
          .remedy = "fused-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = one_by_one,
          .time_factor = 1.03,
          .rank_cost = 1.03};
}
Measure sgd_with_momentum() {
  return {.id = "sgd-momentum",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = sgd_momentum,
          .rank_cost = 2.0};
}
Measure sgd_without_momentum() {
  return {.id = "sgd",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = sgd_plain,
          .rank_cost = 2.2};
}
Measure eight_bit_optimizer() {
  return {.id = "8-bit-optimizer",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = eight_bit,
          .rank_cost = 1.2};
}
Measure adafactor_optimizer() {
  return {.id = "adafactor",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = adafactor,
          .rank_cost = 1.6};
}
Measure offloaded_optimizer() {
  return {.id = "offload-optimizer",
          .remedy = "offload",
          .group = MeasureGroup::optimizer,
          .apply = offload_optimizer,
          .rank_cost = 1.7};
}

}  // namespace oomscope
