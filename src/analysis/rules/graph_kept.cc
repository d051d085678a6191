// graph-kept: the graphs of several passes live at once, since the program keeps something that hangs on them: losses
// added up, outputs in a list, hidden states carried on, backward(retain_graph=True).
//
// In the recording: passes from one line of the program whose blocks, from all over the model, outlive the next passes.
// Passes that one backward has freed together before (micro-batches, two towers) are normal; see usual_groups().
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"

namespace oomscope {
namespace {

bool is_cause(const RunFacts& facts, const Growth& growth) {
  if (!growth.with_graph || !matters(facts, growth.bytes)) return false;
  if (facts.failed()) return growth.passes >= 2;
  return growth.passes >= 3 && growth.passes * 2 >= growth.of;  // still there when the work was done
}

}  // namespace

std::vector<Finding> find_graph_kept(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  for (const Growth& growth : run.growths) {
    if (!is_cause(run, growth)) continue;
    const bool has_backward = run.structure.passes[growth.first_pass].has_backward;
    auto [finding, each] = growth_finding(run, growth, "graph-kept");
    finding.confidence = growth.passes >= 3 ? Confidence::high : Confidence::medium;
    finding.because = because(has_backward ? "graph-outlives-backward" : "graph-without-backward");
    if (has_backward) {
      add_changes(finding, run, growth.bytes - each, {"detach", "loss-item"});
    } else if (run.structure.passes[growth.last_pass].step == run.structure.passes[growth.first_pass].step &&
               run.structure.trains) {
      // No optimizer step lies between them: losses of micro-batches, added for one backward.
      add_changes(finding, run, growth.bytes - each, {"loss-item", "backward-each-part", "detach"});
    } else {
      add_changes(finding, run, growth.bytes - each);
    }
    free_after_pass(finding, run, growth);
    return {finding};
  }
  return {};
}

}  // namespace oomscope
