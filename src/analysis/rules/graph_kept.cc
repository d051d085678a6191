// graph-kept: the graphs of several passes live at once, since the program keeps something that hangs on them: losses
// added up, outputs in a list, hidden states carried on, backward(retain_graph=True).
//
// In the recording: passes from one line of the program whose blocks, from all over the model, outlive the next passes.
// Passes that one backward has freed together before (micro-batches, two towers) are normal; see usual_groups().
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

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
    const int64_t each = growth.bytes / growth.passes;
    const Pass& first = run.structure.passes[growth.first_pass];
    Finding finding = finding_of(run, "graph-kept");
    finding.bytes = growth.bytes;
    finding.claim = claim_of(finding)
                        .with("passes", format_count(growth.passes))
                        .with("bytes", format_bytes(growth.bytes))
                        .with("each", format_bytes(each))
                        .with("site", call_site(run, growth.call));
    finding.confidence = growth.passes >= 3 ? Confidence::high : Confidence::medium;
    finding.because = because(first.has_backward ? "graph-outlives-backward" : "graph-without-backward");
    finding.surer = surer("list-the-names");
    add_evidence(finding,
                 Phrase{.key = "cause.evidence.pass-leaves"}
                     .with("each", format_bytes(each))
                     .with("event", format_count(first.begin))
                     .with("step", std::to_string(first.step)),
                 first.begin, each, call_site(run, growth.call));
    add_site(finding, run, "largest-kept", growth.largest, growth.bytes, growth.blocks);
    if (first.has_backward) {
      add_changes(finding, run, {"detach", "loss-item"}, growth.bytes - each);
    } else if (run.structure.passes[growth.last_pass].step == first.step && run.structure.trains) {
      // No optimizer step lies between them: losses of micro-batches, added for one backward.
      add_changes(finding, run, {"gradient-accumulation", "loss-item", "detach"}, growth.bytes - each);
    } else {
      add_changes(finding, run, {"loss-item", "detach", "gradient-accumulation"}, growth.bytes - each);
    }
    free_after_pass(finding, run, growth);
    return {finding};
  }
  return {};
}

}  // namespace oomscope
