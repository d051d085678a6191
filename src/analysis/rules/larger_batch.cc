// larger-batch: the pass that failed began with larger blocks than all before it: a larger batch, a longer sequence, a
// larger image than before.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_larger_batch(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const uint32_t index = run.pass_at(run.instant().event);
  if (index == kNoPass) return {};
  const Pass& pass = run.structure.passes[index];
  constexpr double kLarger = 1.25;
  const RunFacts::Larger larger = run.larger_than_before(index);
  if (larger.ratio < kLarger) return {};
  Finding finding = finding_of(run, "larger-batch");
  finding.bytes = run.wanted() - run.persistent_bytes();
  finding.claim = claim_of(finding)
                      .with("ratio", fmt::format("{:.1f}", larger.ratio))
                      .with("passes", format_count(larger.passes))
                      .with("site", call_site(run, pass.first_stack));
  finding.confidence = larger.passes >= 2 ? Confidence::high : Confidence::medium;
  finding.because = because("first-requests-larger");
  add_evidence(finding,
               Phrase{.key = "cause.evidence.first-requests"}
                   .with("now", format_bytes(larger.now))
                   .with("before", format_bytes(larger.before))
                   .with("passes", format_count(larger.passes)),
               pass.begin, larger.now, call_site(run, pass.first_stack));
  add_changes(finding, run);
  return {finding};
}

}  // namespace oomscope
