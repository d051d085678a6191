// optimizer-state: the optimizer makes its state in its first step. Either that step fails, or the first pass behind
// it, which is the first that has to live beside the state.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// State that the optimizer step under way has made. A step that only updates makes none; of two optimizers each has a
// first step of its own.
int64_t state_made_since(const RunFacts& run, uint32_t event) {
  int64_t bytes = 0;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (run.categories[id].category != Category::optimizer_state) continue;
    if (allocation.begin != kNoEvent && allocation.begin >= event) bytes += allocation.requested;
  }
  return bytes;
}

// Is the pass behind the first step larger than those before it? Then the state is what left it no room; a pass of the
// same size fails since such steps do not fit at all, which is capacity.
bool is_larger_pass(const RunFacts& run) {
  const uint32_t index = run.pass_at(run.instant().event);
  if (index == kNoPass) return false;
  return run.larger_than_before(index).ratio > 1.0;
}

// The most that was live before the first optimizer step: what a step needs beside the state.
struct Most {
  int64_t bytes = 0;
  uint32_t event = 0;
};
Most most_before_first_step(const RunFacts& run) {
  int64_t live = 0;
  Most most;
  for (const Allocation& allocation : run.timeline().allocations)
    live += allocation.begin == kNoEvent ? allocation.requested : 0;
  for (const Span& span : run.structure.spans) {
    if (span.phase == Phase::optimizer_step) break;
    for (uint32_t next = span.begin; next < span.end; ++next) {
      const Action action = run.trace().action[next];
      if (action == Action::alloc) live += run.trace().size[next];
      if (action == Action::free_requested) live -= run.trace().size[next];
      if (live > most.bytes) most = Most{.bytes = live, .event = next};
    }
  }
  return most;
}

// Enough is free, in pieces, for the request that failed; but the step would need as much as the first did, beside the
// state, and that is more than there is.
bool is_hopeless(const RunFacts& run, int64_t state) {
  return run.diagnosis->kind == Kind::gpu_oom_fragmentation &&
         most_before_first_step(run).bytes + state > run.diagnosis->capacity.high_bytes;
}

StackId stack_of_state(const RunFacts& run) {
  for (uint32_t id : run.live) {
    if (run.categories[id].category == Category::optimizer_state) return run.timeline().allocations[id].stack;
  }
  return run.instant().stack;
}

}  // namespace

std::vector<Finding> find_optimizer_state(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  if (run.timeline().starts_mid_life && run.step == 1 && run.phase != Phase::optimizer_step) return {};
  const int64_t state = run.bytes_at(Category::optimizer_state);
  const Span& span = run.structure.span_at(run.instant().event);
  const bool asks_for_state = run.structure.traits(run.instant().stack).has(Trait::optimizer_state);
  const bool makes_none_yet = state == 0 && run.step <= 1;  // the first request of a step without frames
  const bool in_first_step =
      run.phase == Phase::optimizer_step && (asks_for_state || makes_none_yet || state_made_since(run, span.begin) > 0);
  const bool behind_first_step = run.step == 2 && run.phase != Phase::optimizer_step && state > 0;
  if (!in_first_step && !behind_first_step) return {};
  if (behind_first_step && !run.fits_without(state)) return {};
  Finding finding = finding_of(run, "optimizer-state");
  finding.bytes = state + (asks_for_state || makes_none_yet ? run.request() : 0);
  const int64_t parameters = run.bytes_at(Category::parameter);
  finding.claim =
      Phrase{
          .key = in_first_step ? "cause.optimizer-state.claim" : "cause.optimizer-state.claim-behind",
      }
          .with("bytes", format_bytes(*finding.bytes))
          .with("parameters", format_bytes(parameters))
          .with("site", call_site(run, stack_of_state(run)));
  const bool larger = behind_first_step && (is_larger_pass(run) || is_hopeless(run, state));
  finding.confidence = in_first_step ? Confidence::high : larger ? Confidence::medium : Confidence::low;
  finding.because = because(in_first_step ? "state-in-first-step"
                            : larger      ? "first-pass-beside-state"
                                          : "every-step-needs-state");
  if (behind_first_step) {
    // The request failed on the way to where a step needs most, as the first has shown.
    finding.failed_in = finding.instant;
    finding.instant.failed = false;
    finding.instant.event = std::nullopt;
    finding.instant.phase = run.structure.span_at(most_before_first_step(run).event).phase;
  }
  add_site(finding, run, "state", stack_of_state(run), state, 0);
  // A fused step needs no lists of its own; it needs the state all the same.
  if (in_first_step && !asks_for_state) add_changes(finding, run, std::nullopt, {"fused-optimizer"});
  add_changes(finding, run, std::nullopt, {"lighter-optimizer", "sharding", "offload", "set-to-none"});
  return {finding};
}

}  // namespace oomscope
