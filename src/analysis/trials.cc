// Which remedies can be tried, and how: one table.
#include "analysis/trials.h"

#include <algorithm>
#include <array>

#include "base/bytes_text.h"
#include "plan/measures/measure.h"

namespace oomscope {
namespace {

using Trials = std::vector<Trial>;

Phrase trial_phrase(std::string_view key) { return Phrase{.key = "trial." + std::string(key)}; }

// ---- the blocks that a finding is about ----

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

// ---- measures ----

// What `fit` would do: one transform for one remedy.
Trials measure(std::string_view id) {
  const std::optional<Measure> found = find_measure(id);
  if (!found) return {};
  Trial trial{.edits = {}, .transform = {}, .settings = {}, .what = name_of(*found)};
  trial.transform = [measure = *found](const Job& job) { return measure.apply(job, measure.number); };
  return {std::move(trial)};
}

Trials chunked_loss(const RunFacts&, const Finding&) { return measure("chunked-loss"); }
Trials fused_optimizer(const RunFacts&, const Finding&) { return measure("fused-optimizer"); }
Trials lighter_optimizer(const RunFacts&, const Finding&) { return measure("8-bit-optimizer"); }
Trials set_to_none(const RunFacts&, const Finding&) { return measure("set-to-none"); }

Trials micro_batches(const RunFacts&, const Finding&) { return measure("accumulate-4"); }

Trial smaller_batch_by(double by, uint32_t from_event, Phrase what) {
  Trial trial{.edits = {}, .transform = {}, .settings = {}, .what = std::move(what)};
  trial.transform = [=](const Job& job) -> Result<Job> { return with_smaller_batch(job, by, from_event); };
  return trial;
}

// Nothing says that an exception holds what a finding of another kind is about.
Trials cleared_traceback(const RunFacts& run, const Finding& finding) {
  return finding.id == "exception-holds-tensors" ? without_cause(run, finding) : Trials{};
}

Trials smaller_batch(const RunFacts& run, const Finding& finding) {
  if (finding.id == "larger-batch") {
    // As large as the largest pass before it.
    const uint32_t pass = run.pass_at(run.instant().event);
    return {smaller_batch_by(run.larger_than_before(pass).ratio, run.structure.passes[pass].begin,
                             trial_phrase("pass-as-before"))};
  }
  Trials trials;
  for (const int parts : {2, 4, 8}) {
    trials.push_back(smaller_batch_by(parts, 0, trial_phrase("part-of-batch").with("parts", std::to_string(parts))));
    if (!run.failed()) break;
  }
  return trials;
}

// Half the pixels are as much as half the batch; matrices of length × length are another matter.
Trials smaller_input(const RunFacts& run, const Finding& finding) {
  return finding.id == "attention-matrix" ? Trials{} : smaller_batch(run, finding);
}

// Where no stack says which blocks are the matrices, the finding does.
Trials fused_attention(const RunFacts& run, const Finding& finding) {
  Trials trials = measure("fused-attention");
  for (Trial& trial : without_cause(run, finding)) trials.push_back(std::move(trial));
  return trials;
}
Trials need_weights_false(const RunFacts& run, const Finding& finding) {
  Trials trials = measure("need-weights-false");
  for (Trial& trial : without_cause(run, finding)) trials.push_back(std::move(trial));
  return trials;
}

// The passes from the same line of the program as the one under way that had no backward.
Trials without_graph_kept(const RunFacts& run, const Finding&) {
  const uint32_t now = run.pass_at(run.instant().event);
  if (now == kNoPass) return {};
  std::vector<bool> passes;
  for (uint32_t p = 0; p < run.structure.passes.size(); ++p) {
    const Pass& pass = run.structure.passes[p];
    const bool same = pass.caller == run.structure.passes[now].caller && !pass.has_backward;
    passes.push_back(same && run.rests[p].freed_by == kNoPass);
  }
  Trial trial{.edits = {}, .transform = {}, .settings = {}, .what = trial_phrase("freed-behind-layers")};
  trial.transform = [passes = std::move(passes)](const Job& job) { return without_graph(job, passes); };
  return {std::move(trial)};
}

// ---- the rest ----

Trials expandable_segments(const RunFacts& run, const Finding&) {
  const ReplayConfig& config = run.diagnosis->verification->config;
  if (!parse_allocator_settings("expandable_segments:True", config.rules.parser).has_value()) return {};
  Trial trial{.edits = {}, .transform = {}, .settings = config.settings, .what = trial_phrase("expandable-segments")};
  trial.settings->expandable_segments = true;
  return {std::move(trial)};
}

// cuBLAS with CUBLAS_WORKSPACE_CONFIG=:4096:2, and convolutions that need no more.
Trials smaller_workspace(const RunFacts& run, const Finding&) {
  constexpr int64_t kSmall = int64_t{8} << 20;
  Trial trial{.edits = {},
              .transform = {},
              .settings = {},
              .what = trial_phrase("smaller-workspaces").with("bytes", format_bytes(kSmall))};
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
  Trial trial{.edits = {}, .transform = {}, .settings = {}, .what = trial_phrase("nothing-gathered")};
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

// Private pools' blocks from the common pool; then, as whoever frees a MemPool does, given back before the request that
// failed. What lives in a pool the program may still need, hence the premise.
Trials shared_pools(const RunFacts& run, const Finding&) {
  if (!run.failed()) return {};
  Trial shared{.edits = {}, .transform = {}, .settings = {}, .what = trial_phrase("shared-pools")};
  shared.edits.shares_pools = true;
  Trial freed = shared;
  freed.what = trial_phrase("freed-pools");
  freed.premise = trial_phrase("freed-pools-premise");
  for (uint32_t id : run.live) {
    if (run.timeline().pools[run.timeline().allocations[id].pool_index].is_default()) continue;
    freed.edits.blocks.push_back({.allocation = id, .free_at = run.instant().event});
  }
  return {std::move(shared), std::move(freed)};
}

struct Row {
  std::string_view remedy;
  Trials (*trials)(const RunFacts&, const Finding&);
};

constexpr std::array kRows = {
    Row{"allocator-setting", expandable_segments},
    Row{"backward-each-part", without_cause},
    Row{"chunked-loss", chunked_loss},
    Row{"clear-traceback", cleared_traceback},
    Row{"copy-on-cpu", without_cause},
    Row{"delete-references", without_cause},
    Row{"detach", without_cause},
    Row{"distributed-data-parallel", no_gathering},
    Row{"fused-attention", fused_attention},
    Row{"fused-optimizer", fused_optimizer},
    Row{"gradient-accumulation", micro_batches},
    Row{"group-small-blocks", without_cause},
    Row{"inference-mode", without_graph_kept},
    Row{"lighter-optimizer", lighter_optimizer},
    Row{"load-on-cpu", without_cause},
    Row{"loss-item", without_cause},
    Row{"need-weights-false", need_weights_false},
    Row{"no-grad", without_graph_kept},
    Row{"pool-limit", shared_pools},
    Row{"results-to-cpu", without_cause},
    Row{"reuse-buffers", without_cause},
    Row{"set-to-none", set_to_none},
    Row{"smaller-batch", smaller_batch},
    Row{"smaller-input", smaller_input},
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
