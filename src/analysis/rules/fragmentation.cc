// fragmentation: enough was free, in pieces that could not serve.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_fragmentation(const CaseFacts& facts) {
  if (facts.run == nullptr || facts.run->diagnosis->kind != Kind::gpu_oom_fragmentation) return {};
  const RunFacts& run = *facts.run;
  const int64_t free = run.instant().reserved_bytes - run.instant().active_bytes;
  Finding finding = finding_of(run, "fragmentation");
  finding.bytes = free;
  finding.claim = run.diagnosis->sentence;
  finding.confidence = run.diagnosis->confidence;
  finding.because = because("replayed-segments");
  add_changes(finding, run);
  return {finding};
}

}  // namespace oomscope
