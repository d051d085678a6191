// Which remedies can be tried, and how: one table.
#include "analysis/trials.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

using Trials = std::vector<Trial>;

Phrase trial_phrase(std::string_view key) { return Phrase{.key = "trial." + std::string(key)}; }

// --- the blocks that a finding is about
// --------------------------------------------------------------------------------

// Without the cause: the rule that found it says which blocks those are.
Trials without_cause(const RunFacts&, const Finding& finding) {
  if (finding.edits.empty() && !finding.drops_request) return {};
  Trial trial;
  trial.edits.blocks = finding.edits;
  if (finding.drops_request) trial.edits.last_failure_bytes = 0;
  const std::string_view what = finding.id == "small-blocks-pin-segments" ? "one-buffer"
                                : finding.id == "growing-sizes"           ? "largest-size"
                                : finding.edits.empty()                   ? "without-request"
                                                                          : "without-blocks";
  trial.what = trial_phrase(what).with("blocks", format_count(static_cast<int64_t>(finding.edits.size())));
  return {std::move(trial)};
}

// --- a smaller batch
// ---------------------------------------------------------------------------------------------------

std::unordered_set<int64_t> parameter_sizes(const RunFacts& run) {
  std::unordered_set<int64_t> sizes;
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    if (run.categories[id].category == Category::parameter) sizes.insert(run.timeline().allocations[id].requested);
  }
  return sizes;
}

bool is_pass_phase(Phase phase) {
  return phase == Phase::forward || phase == Phase::loss || phase == Phase::backward || phase == Phase::evaluation ||
         phase == Phase::generation;
}

// Does a block grow with the batch? What a pass makes does, but for what backward makes of a parameter's size.
class BatchBlocks {
 public:
  explicit BatchBlocks(const RunFacts& run) : run_(run), parameters_(parameter_sizes(run)) {}

  [[nodiscard]] bool grows(uint32_t id) const {
    const Allocation& allocation = run_.timeline().allocations[id];
    switch (run_.categories[id].category) {
      case Category::activation:
      case Category::input:
      case Category::logits: return true;
      case Category::temporary: return allocation.begin != kNoEvent && in_pass(allocation.begin, allocation.requested);
      default: return false;
    }
  }
  [[nodiscard]] bool request_grows() const { return in_pass(run_.instant().event, run_.request()); }

 private:
  [[nodiscard]] bool in_pass(uint32_t event, int64_t bytes) const {
    if (event >= run_.structure.span_of.size()) return false;
    const Phase phase = run_.structure.span_at(event).phase;
    return is_pass_phase(phase) && !(phase == Phase::backward && parameters_.count(bytes) != 0);
  }

  const RunFacts& run_;
  std::unordered_set<int64_t> parameters_;
};

int64_t divided(int64_t bytes, double by) { return std::max<int64_t>(static_cast<int64_t>(bytes / by), 1); }

// Blocks born from `event` on that grow with the batch, as a batch smaller by `by` has them.
RequestEdits with_smaller_batch(const RunFacts& run, double by, uint32_t event = 0) {
  const BatchBlocks batch(run);
  RequestEdits edits;
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const Allocation& allocation = run.timeline().allocations[id];
    const uint32_t begin = allocation.begin == kNoEvent ? 0 : allocation.begin;
    if (begin < event || !batch.grows(id)) continue;
    edits.blocks.push_back({.allocation = id, .size = divided(allocation.requested, by)});
  }
  if (run.failed() && batch.request_grows()) edits.last_failure_bytes = divided(run.request(), by);
  return edits;
}

Trials smaller_batch(const RunFacts& run, const Finding& finding) {
  Trials trials;
  if (finding.id == "larger-batch") {
    // As large as the largest pass before it.
    const uint32_t pass = run.pass_at(run.instant().event);
    const double ratio = run.larger_than_before(pass).ratio;
    trials.push_back({.edits = with_smaller_batch(run, ratio, run.structure.passes[pass].begin),
                      .settings = {},
                      .what = trial_phrase("pass-as-before")});
    return trials;
  }
  for (const int parts : {2, 4, 8}) {
    RequestEdits edits = with_smaller_batch(run, parts);
    if (edits.blocks.empty() && !edits.last_failure_bytes) break;
    trials.push_back({.edits = std::move(edits),
                      .settings = {},
                      .what = trial_phrase("part-of-batch").with("parts", std::to_string(parts))});
    if (!run.failed()) break;
  }
  return trials;
}

// Micro-batches: a quarter of the batch, while the gradients of those before are there.
Trials micro_batches(const RunFacts& run, const Finding& finding) {
  if (finding.id == "graph-kept") return without_cause(run, finding);
  if (run.structure.passes.empty()) return {};
  constexpr int kParts = 4;
  Trial trial{.edits = with_smaller_batch(run, kParts), .settings = {}, .what = trial_phrase("micro-batches")};
  if (trial.edits.blocks.empty()) return {};
  // The first micro-batch's gradients live through all others, beside what the recording made of them.
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    if (run.categories[id].category == Category::gradient)
      trial.edits.blocks.push_back({.allocation = id, .free_at = 0});
  }
  const uint32_t first = run.structure.passes.front().begin;
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const Allocation& allocation = run.timeline().allocations[id];
    const bool there = allocation.begin == kNoEvent || allocation.begin < first;
    if (run.categories[id].category == Category::parameter && there && allocation.free_requested > first)
      trial.edits.added.push_back({.event = first, .size = allocation.requested});
  }
  return {std::move(trial)};
}

// --- no graph
// ----------------------------------------------------------------------------------------------------------

// Without a graph a block is free when its readers have run. The recording does not say when that was; but layers
// follow each other, so what one layer made is read by the next and no later. Layers are told by the stacks that come
// again: a block is freed where its stack comes for the second time after its own. Long skips (U-Net) live longer.
class LayerLives {
 public:
  explicit LayerLives(const RunFacts& run) : run_(run) {}

  // Edits for a pass; empty where no stack comes again.
  void add_pass(uint32_t index, std::vector<RequestEdit>& edits) {
    const Pass& pass = run_.structure.passes[index];
    const uint32_t end = std::min(pass.forward_end, run_.basis);
    std::map<uint32_t, std::vector<uint32_t>> by_stack;  // stack -> allocations in order
    const HugeVector<Allocation>& all = run_.timeline().allocations;
    for (uint32_t event = pass.begin; event < end; ++event) {
      const uint32_t id = run_.timeline().allocation_of[event];
      if (id == kNoAllocation || all[id].begin != event || !run_.is_left_by_pass(id)) continue;
      by_stack[static_cast<uint32_t>(all[id].stack)].push_back(id);
    }
    const uint32_t usual = usual_gap(by_stack);
    if (usual == 0) return;
    for (const auto& [stack, ids] : by_stack) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const Allocation& block = all[ids[i]];
        const uint32_t read = i + 2 < ids.size() ? all[ids[i + 2]].begin : block.begin + 2 * usual;
        if (block.free_requested <= read) continue;
        edits.push_back({.allocation = ids[i], .free_at = read});
      }
    }
  }

 private:
  [[nodiscard]] uint32_t usual_gap(const std::map<uint32_t, std::vector<uint32_t>>& by_stack) const {
    std::vector<uint32_t> gaps;
    const HugeVector<Allocation>& all = run_.timeline().allocations;
    for (const auto& [stack, ids] : by_stack) {
      for (size_t i = 1; i < ids.size(); ++i) gaps.push_back(all[ids[i]].begin - all[ids[i - 1]].begin);
    }
    if (gaps.empty()) return 0;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    return *middle;
  }

  const RunFacts& run_;
};

Trials without_graph(const RunFacts& run, const Finding&) {
  const uint32_t now = run.pass_at(run.instant().event);
  if (now == kNoPass) return {};
  LayerLives lives(run);
  Trial trial{.edits = {}, .settings = {}, .what = trial_phrase("freed-behind-layers")};
  for (uint32_t p = 0; p < run.structure.passes.size(); ++p) {
    const Pass& pass = run.structure.passes[p];
    const bool same = pass.caller == run.structure.passes[now].caller && !pass.has_backward;
    if (same && run.rests[p].freed_by == kNoPass) lives.add_pass(p, trial.edits.blocks);
  }
  if (trial.edits.blocks.empty()) return {};
  return {std::move(trial)};
}

// --- the loss
// ----------------------------------------------------------------------------------------------------------

Trials chunked_loss(const RunFacts& run, const Finding& finding) {
  constexpr int kChunks = 8;
  Trial trial{
      .edits = {}, .settings = {}, .what = trial_phrase("logits-in-parts").with("parts", std::to_string(kChunks))};
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    if (run.categories[id].category != Category::logits) continue;
    trial.edits.blocks.push_back(
        {.allocation = id, .size = divided(run.timeline().allocations[id].requested, kChunks)});
  }
  if (finding.id == "logits") {
    for (const RequestEdit& edit : finding.edits) {
      const int64_t bytes = run.timeline().allocations[edit.allocation].requested;
      trial.edits.blocks.push_back({.allocation = edit.allocation, .size = divided(bytes, kChunks)});
    }
  }
  const bool for_logits = finding.id == "logits" && is_pass_phase(run.phase);
  if (run.failed() && for_logits) trial.edits.last_failure_bytes = divided(run.request(), kChunks);
  if (trial.edits.blocks.empty() && !trial.edits.last_failure_bytes) return {};
  return {std::move(trial)};
}

// --- the optimizer
// -----------------------------------------------------------------------------------------------------

void drop_step_temporaries(const RunFacts& run, RequestEdits& edits) {
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (run.categories[id].category != Category::temporary || allocation.begin == kNoEvent) continue;
    if (run.structure.span_at(allocation.begin).phase != Phase::optimizer_step) continue;
    edits.blocks.push_back({.allocation = id, .free_at = 0});
  }
}

bool asks_for_state(const RunFacts& run) {
  return run.phase == Phase::optimizer_step && run.structure.traits(run.instant().stack).has(Trait::optimizer_state);
}

Trials fused_optimizer(const RunFacts& run, const Finding&) {
  Trial trial{.edits = {}, .settings = {}, .what = trial_phrase("no-step-temporaries")};
  drop_step_temporaries(run, trial.edits);
  const bool for_temporary = run.failed() && run.phase == Phase::optimizer_step && !asks_for_state(run);
  if (for_temporary) trial.edits.last_failure_bytes = 0;
  if (trial.edits.blocks.empty() && !for_temporary) return {};
  return {std::move(trial)};
}

// 8-bit Adam: a quarter of the state, updated parameter by parameter. Where the step failed while it made its state,
// what it had not made yet is added, so that the answer is for the whole step.
Trials lighter_optimizer(const RunFacts& run, const Finding&) {
  constexpr int kLighter = 4;
  Trial trial{.edits = {}, .settings = {}, .what = trial_phrase("lighter-state")};
  int64_t state = 0;
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    if (run.categories[id].category != Category::optimizer_state) continue;
    state += run.timeline().allocations[id].requested;
    trial.edits.blocks.push_back(
        {.allocation = id, .size = divided(run.timeline().allocations[id].requested, kLighter)});
  }
  drop_step_temporaries(run, trial.edits);
  if (run.failed() && run.phase == Phase::optimizer_step) {
    trial.edits.last_failure_bytes = asks_for_state(run) ? divided(run.request(), kLighter) : 0;
    const int64_t whole = 2 * run.bytes_at(Category::parameter);  // Adam's two states
    const int64_t missing = whole - state - (asks_for_state(run) ? run.request() : 0);
    if (missing > 0) trial.edits.added.push_back({.event = run.instant().event, .size = missing / kLighter});
  }
  if (trial.edits.blocks.empty() && !trial.edits.last_failure_bytes) return {};
  return {std::move(trial)};
}

// Gradients that were there when the pass began, and were not needed before its backward.
Trials no_gradients_in_forward(const RunFacts& run, const Finding&) {
  const uint32_t now = run.pass_at(run.instant().event);
  if (now == kNoPass || run.instant().event >= run.structure.passes[now].forward_end) return {};
  const uint32_t begin = run.structure.passes[now].begin;
  Trial trial{.edits = {}, .settings = {}, .what = trial_phrase("no-gradients")};
  for (uint32_t id : run.live_at_peak) {
    const Allocation& allocation = run.timeline().allocations[id];
    const bool there = allocation.begin == kNoEvent || allocation.begin < begin;
    if (run.categories[id].category != Category::gradient || !there) continue;
    trial.edits.blocks.push_back({.allocation = id, .free_at = begin});
  }
  if (trial.edits.blocks.empty()) return {};
  return {std::move(trial)};
}

// --- the rest
// ----------------------------------------------------------------------------------------------------------

Trials expandable_segments(const RunFacts& run, const Finding&) {
  const ReplayConfig& config = run.diagnosis->verification->config;
  if (!parse_allocator_settings("expandable_segments:True", config.rules.parser).has_value()) return {};
  Trial trial{.edits = {}, .settings = config.settings, .what = trial_phrase("expandable-segments")};
  trial.settings->expandable_segments = true;
  return {std::move(trial)};
}

// cuBLAS with CUBLAS_WORKSPACE_CONFIG=:4096:2, and convolutions that need no more.
Trials smaller_workspace(const RunFacts& run, const Finding&) {
  constexpr int64_t kSmall = int64_t{8} << 20;
  Trial trial{
      .edits = {}, .settings = {}, .what = trial_phrase("smaller-workspaces").with("bytes", format_bytes(kSmall))};
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const int64_t bytes = run.timeline().allocations[id].requested;
    if (run.categories[id].category != Category::workspace || bytes <= kSmall) continue;
    trial.edits.blocks.push_back({.allocation = id, .size = kSmall});
  }
  const bool asks = run.failed() && run.structure.traits(run.instant().stack).has(Trait::library_workspace);
  if (asks) trial.edits.last_failure_bytes = std::min(run.request(), kSmall);
  if (trial.edits.blocks.empty() && !asks) return {};
  return {std::move(trial)};
}

// Without what nn.DataParallel moves to this device.
Trials no_gathering(const RunFacts& run, const Finding&) {
  Trial trial{.edits = {}, .settings = {}, .what = trial_phrase("nothing-gathered")};
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const StackTraits& traits = run.traits(id);
    if (traits.has(Trait::data_parallel) && !traits.has(Trait::module_move))
      trial.edits.blocks.push_back({.allocation = id, .free_at = 0});
  }
  const bool gathers = run.failed() && run.structure.traits(run.instant().stack).has(Trait::data_parallel);
  if (gathers) trial.edits.last_failure_bytes = 0;
  if (trial.edits.blocks.empty() && !gathers) return {};
  return {std::move(trial)};
}

// Private pools' blocks from the common pool, and given back before the request that failed.
Trials shared_pools(const RunFacts& run, const Finding&) {
  if (!run.failed()) return {};
  Trial trial{.edits = {}, .settings = {}, .what = trial_phrase("shared-pools")};
  trial.edits.shares_pools = true;
  for (uint32_t id : run.live) {
    if (run.timeline().pools[run.timeline().allocations[id].pool_index].is_default()) continue;
    trial.edits.blocks.push_back({.allocation = id, .free_at = run.instant().event});
  }
  return {std::move(trial)};
}

struct Row {
  std::string_view remedy;
  Trials (*trials)(const RunFacts&, const Finding&);
};

constexpr std::array kRows = {
    Row{"allocator-setting", expandable_segments},
    Row{"chunked-loss", chunked_loss},
    Row{"clear-traceback", without_cause},
    Row{"copy-on-cpu", without_cause},
    Row{"delete-references", without_cause},
    Row{"detach", without_cause},
    Row{"distributed-data-parallel", no_gathering},
    Row{"fused-attention", without_cause},
    Row{"fused-optimizer", fused_optimizer},
    Row{"gradient-accumulation", micro_batches},
    Row{"group-small-blocks", without_cause},
    Row{"inference-mode", without_graph},
    Row{"lighter-optimizer", lighter_optimizer},
    Row{"load-on-cpu", without_cause},
    Row{"loss-item", without_cause},
    Row{"need-weights-false", without_cause},
    Row{"no-grad", without_graph},
    Row{"pool-limit", shared_pools},
    Row{"results-to-cpu", without_cause},
    Row{"reuse-buffers", without_cause},
    Row{"set-to-none", no_gradients_in_forward},
    Row{"smaller-batch", smaller_batch},
    Row{"smaller-input", smaller_batch},
    Row{"smaller-workspace", smaller_workspace},
    Row{"static-shapes", without_cause},
    Row{"wait-for-stream", without_cause},
};

}  // namespace

std::vector<Trial> trials_of(const RunFacts& facts, const Finding& finding, std::string_view remedy) {
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) { return each.remedy == remedy; });
  return row == kRows.end() ? Trials{} : row->trials(facts, finding);
}

}  // namespace oomscope
