// Other optimizers: what the step makes for a moment, and the state between steps.
#include <algorithm>
#include <set>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

constexpr double kExact = 0.005;  // error of measures whose every request is known; 0.01 % on 26 other models

int64_t most_step_temporaries(const Job& job) {
  int64_t live = 0;
  int64_t most = 0;
  for (size_t i = 0; i < job.requests.kind.size(); ++i) {
    const uint32_t id = job.requests.id[i];
    const RequestKind kind = job.requests.kind[i];
    const bool ends = kind == RequestKind::free || kind == RequestKind::free_held;
    if ((kind != RequestKind::malloc && !ends) || !is_step_temporary(job, id)) continue;
    live += ends ? -job.size(id) : job.size(id);
    most = std::max(most, live);
  }
  return most;
}

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

// From so many lines does the optimizer make its state: Adam from two.
size_t lines_of_state(const Job& job) {
  std::set<StackId> stacks;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (is_optimizer_state(job, id)) stacks.insert(job.blocks[id].stack);
  }
  return stacks.size();
}

bool has_two_states(const Job& job) { return lines_of_state(job) > 1; }

// One parameter after the other: twice its size for a moment, as Adam's single-tensor step makes (sqrt, then add).
Result<Job> one_by_one(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  JobEditor editor(job);
  drop_step_temporaries(job, editor);
  if (has_two_states(job)) {
    for (const StepPosition& step : step_positions(job)) {
      editor.scratch(step.position, 2 * largest_parameter(job), step.like);
    }
  }
  return editor.build();
}

// All parameters at once: Adam's foreach step makes their square roots, as large as all of them together.
Result<Job> all_at_once(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  if (!has_two_states(job)) return does_not_apply("one-state");
  const std::vector<uint32_t> parameters = trained_parameters(job);
  int64_t bytes = 0;
  for (uint32_t id : parameters) bytes += job.size(id);
  if (2 * most_step_temporaries(job) > bytes) return does_not_apply("already-foreach");
  JobEditor editor(job);
  drop_step_temporaries(job, editor);
  for (const StepPosition& step : step_positions(job)) {
    std::vector<uint32_t> made;
    for (uint32_t id : parameters) {
      made.push_back(editor.add(job.size(id), step.like));
      editor.ask(step.position, made.back());
    }
    for (uint32_t id : made) editor.release(step.position, id);
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

// Where the step failed while it made its state, what it had not made yet belongs to the answer, too: `lighter` times
// less than Adam's two numbers a parameter.
void add_missing_states(const Job& job, int64_t lighter, JobEditor& editor) {
  if (job.failed == kNoAllocation || job.blocks[job.failed].category != Category::optimizer_state) return;
  int64_t missing = 0;
  for (uint32_t id : trained_parameters(job)) missing += 2 * job.size(id);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (is_optimizer_state(job, id)) missing -= job.size(id);
  }
  if (missing > 0) editor.ask(job.blocks[job.failed].made_at, editor.add(missing / lighter, job.failed));
}

// bitsandbytes: one byte an element and four a block of 256, tensors below 4096 elements stay as they are.
Result<Job> eight_bit(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  const int64_t element = element_bytes(job);
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const int64_t elements = job.size(id) / element;
    if (is_optimizer_state(job, id) && elements >= 4096) editor.resize(id, elements + elements / 64);
  }
  drop_step_temporaries(job, editor);
  add_missing_states(job, element, editor);
  return editor.build();
}

// torch.optim.Adafactor keeps a row and a column of each matrix; no shape is recorded, so they are taken as square.
// The step makes the update of one parameter at a time.
Result<Job> adafactor(const Job& job) {
  if (!has_step(job)) return does_not_apply("no-step");
  const int64_t element = element_bytes(job);
  JobEditor editor(job);
  StackId kept = StackId::none;
  drop_step_temporaries(job, editor);
  for (const StepPosition& step : step_positions(job)) {
    editor.scratch(step.position, 2 * largest_parameter(job), step.like);
  }
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (!is_optimizer_state(job, id)) continue;
    if (kept == StackId::none) kept = job.blocks[id].stack;
    if (job.blocks[id].stack != kept) {
      editor.drop(id);
    } else {
      int64_t side = 1;
      while (side * side < job.size(id) / element) side *= 2;
      editor.resize(id, 2 * element * side);
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

bool has_momentum_alone(const Job& job) { return lines_of_state(job) == 1; }

Measure fused_step() {
  return {.id = "fused-optimizer",
          .name = "fused-optimizer",
          .remedy = "fused-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return fused(job); },
          .time_factor = 1.0,
          .error = kExact,
          .rank_cost = 1.0};
}
Measure multi_tensor_step() {
  return {.id = "foreach-on",
          .name = "foreach-on",
          .remedy = "fused-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return all_at_once(job); },
          .error = kExact,
          .rank_cost = 1.0};
}
Measure single_tensor_step() {
  return {.id = "foreach-off",
          .name = "foreach-off",
          .remedy = "fused-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return one_by_one(job); },
          .time_factor = 1.03,
          .error = kExact,
          .rank_cost = 1.03};
}
Measure sgd_with_momentum() {
  return {.id = "sgd-momentum",
          .name = "sgd-momentum",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return sgd_momentum(job); },
          .error = kExact,
          .rank_cost = 2.0};
}
Measure sgd_without_momentum() {
  return {.id = "sgd",
          .name = "sgd",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return sgd_plain(job); },
          .error = kExact,
          .rank_cost = 2.2};
}
Measure eight_bit_optimizer() {
  return {.id = "8-bit-optimizer",
          .name = "8-bit-optimizer",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return eight_bit(job); },
          .rank_cost = 1.2};
}
Measure adafactor_optimizer() {
  return {.id = "adafactor",
          .name = "adafactor",
          .remedy = "lighter-optimizer",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return adafactor(job); },
          .rank_cost = 1.6};
}
Measure offloaded_optimizer() {
  return {.id = "offload-optimizer",
          .name = "offload-optimizer",
          .remedy = "offload",
          .group = MeasureGroup::optimizer,
          .apply = [](const Job& job, int64_t) { return offload_optimizer(job); },
          .rank_cost = 1.7};
}

}  // namespace oomscope
