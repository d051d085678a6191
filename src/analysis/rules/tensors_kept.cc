// tensors-kept: each pass leaves its results on the card, without their graph: outputs collected in a list, metrics,
// predictions of an evaluation.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"

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
    auto [finding, each] = growth_finding(run, growth, "tensors-kept");
    finding.confidence = growth.passes >= 5 ? Confidence::high : Confidence::medium;
    finding.because = because("results-outlive-passes");
    add_changes(finding, run, growth.bytes - each);
    free_after_pass(finding, run, growth);
    return {finding};
  }
  return {};
}

}  // namespace oomscope
