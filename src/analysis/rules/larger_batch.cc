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
  int64_t largest = 0;
  int64_t passes = 0;
  for (uint32_t p = 0; p < index; ++p) {
    const Pass& earlier = run.structure.passes[p];
    if (earlier.first_stack != pass.first_stack && earlier.caller != pass.caller) continue;
    largest = std::max(largest, run.rests[p].head_bytes);
    passes += 1;
  }
  constexpr double kLarger = 1.25;
  const int64_t now = run.rests[index].head_bytes;
  if (passes == 0 || static_cast<double>(now) < kLarger * static_cast<double>(largest)) return {};
  const double ratio = static_cast<double>(now) / static_cast<double>(largest);
  Finding finding = finding_of(run, "larger-batch");
  finding.bytes = run.wanted() - run.persistent_bytes();
  finding.claim = std::move(finding.claim)
                      .with("ratio", fmt::format("{:.1f}", ratio))
                      .with("passes", format_count(passes))
                      .with("site", call_site(run, pass.first_stack));
  finding.confidence = passes >= 2 ? Confidence::high : Confidence::medium;
  finding.because = because("first-requests-larger");
  add_evidence(finding,
               Phrase{.key = "cause.evidence.first-requests"}
                   .with("now", format_bytes(now))
                   .with("before", format_bytes(largest))
                   .with("passes", format_count(passes)),
               pass.begin, now, call_site(run, pass.first_stack));
  add_changes(finding, {"smaller-batch", "gradient-accumulation", "static-shapes"});
  return {finding};
}

}  // namespace oomscope
