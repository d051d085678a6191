// grad-in-evaluation: a forward that no backward follows keeps its activations, since gradients are on: validation or
// inference without no_grad.
//
// In the recording: the model is called from a line whose passes never see a backward, while passes from another line
// do, and the pass keeps blocks of many places of the model as training does.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

struct Callers {
  bool trained_elsewhere = false;
  bool trained_here = false;
  bool trained_by_line = false;  // the same line, reached from elsewhere
  int64_t earlier = 0;           // passes from this line before
  int64_t earlier_kept = 0;      // of them, those that kept a graph
};

Callers callers_before(const RunFacts& run, uint32_t pass) {
  Callers callers;
  const uint32_t caller = run.structure.passes[pass].caller;
  for (uint32_t p = 0; p < pass; ++p) {
    const Pass& earlier = run.structure.passes[p];
    const bool here = earlier.caller == caller;
    // One backward serves all modules that were called for it: an encoder's pass has none of its own.
    const bool trained = earlier.has_backward || run.rests[p].freed_by != kNoPass;
    const bool same_line = earlier.call == run.structure.passes[pass].call;
    callers.trained_by_line = callers.trained_by_line || (trained && same_line);
    if (trained) (here ? callers.trained_here : callers.trained_elsewhere) = true;
    if (!here) continue;
    callers.earlier += 1;
    callers.earlier_kept += run.kept_graph(p) ? 1 : 0;
  }
  return callers;
}

}  // namespace

std::vector<Finding> find_grad_in_evaluation(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  const uint32_t index = run.pass;
  if (index == kNoPass) return {};
  const Pass& pass = run.structure.passes[index];
  const PassRest& rest = run.rests[index];
  const bool in_forward = run.phase == Phase::forward || run.phase == Phase::loss;
  if (!in_forward || pass.has_backward || rest.freed_by != kNoPass) return {};
  const Callers callers = callers_before(run, index);
  if (callers.trained_here) return {};
  const bool certain = callers.earlier > 0 && callers.earlier_kept == callers.earlier;
  // Inference alone: only what earlier calls showed tells that none of them had a backward.
  if (!callers.trained_elsewhere && !(run.failed() && certain)) return {};
  if (callers.earlier > 0 && !certain) return {};
  if (!run.kept_graph(index) || !matters(run, rest.kept_bytes)) return {};
  if (!run.failed() && !callers.trained_elsewhere) return {};
  Finding finding = finding_of(run, "grad-in-evaluation");
  finding.bytes = rest.kept_bytes;
  finding.claim =
      claim_of(finding).with("bytes", format_bytes(rest.kept_bytes)).with("site", call_site(run, pass.first_stack));
  // A training step may be called from two places: then that no backward has come yet says little.
  finding.confidence = certain || pass.says_evaluation ? Confidence::high
                       : callers.trained_by_line       ? Confidence::low
                                                       : Confidence::medium;
  finding.because = because(certain ? "no-backward-after-earlier" : "no-backward-from-here");
  if (!certain) finding.surer = surer("mark-evaluation");
  finding.instant.phase = Phase::evaluation;
  finding.instant.step = std::nullopt;
  add_evidence(finding,
               Phrase{.key = "cause.evidence.keeps-activations"}
                   .with("bytes", format_bytes(rest.kept_bytes))
                   .with("places", std::to_string(rest.kept_stacks))
                   .with("site", call_site(run, pass.first_stack)),
               pass.begin, rest.kept_bytes, call_site(run, pass.first_stack));
  add_changes(finding, run, rest.kept_bytes);
  return {finding};
}

}  // namespace oomscope
