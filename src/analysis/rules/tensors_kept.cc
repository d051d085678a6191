// tensors-kept: each pass leaves its results on the card, without their graph: outputs collected in a list, metrics,
// predictions of an evaluation.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

bool is_cause(const RunFacts& facts, const Growth& growth) {
  constexpr int64_t kTrend = 3;
  if (growth.with_graph || growth.passes < kTrend || !matters(facts, growth.bytes)) return false;
  return facts.failed() || growth.passes * 2 >= growth.of;
}

}  // namespace

std::vector<Finding> find_tensors_kept(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  for (const Growth& growth : run.growths) {
    if (!is_cause(run, growth)) continue;
    const int64_t each = growth.bytes / growth.passes;
    const Pass& first = run.structure.passes[growth.first_pass];
    Finding finding = finding_of(run, "tensors-kept");
    finding.bytes = growth.bytes;
    finding.claim = claim_of(finding)
                        .with("passes", format_count(growth.passes))
                        .with("bytes", format_bytes(growth.bytes))
                        .with("each", format_bytes(each))
                        .with("site", call_site(run, growth.call));
    finding.confidence = growth.passes >= 5 ? Confidence::high : Confidence::medium;
    finding.because = because("results-outlive-passes");
    finding.surer = surer("list-the-names");
    add_evidence(finding,
                 Phrase{.key = "cause.evidence.pass-leaves"}
                     .with("each", format_bytes(each))
                     .with("event", format_count(first.begin))
                     .with("step", std::to_string(first.step)),
                 first.begin, each, call_site(run, growth.call));
    add_site(finding, run, "largest-kept", growth.largest, growth.bytes, growth.blocks);
    add_changes(finding, run, {"results-to-cpu", "detach", "delete-references"}, growth.bytes - each);
    free_after_pass(finding, run, growth);
    return {finding};
  }
  return {};
}

}  // namespace oomscope
