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
  const FreeSpace& space = run.diagnosis->free_space;
  add_evidence(finding,
               Phrase{.key = "cause.evidence.pieces"}
                   .with("pieces", format_count(space.usable_pieces))
                   .with("bytes", format_bytes(space.usable_bytes))
                   .with("largest", format_bytes(space.largest_usable_bytes))
                   .with("request", format_bytes(run.request())),
               run.instant().event, space.usable_bytes);
  add_categories(finding, run);
  add_changes(finding, run);
  return {finding};
}

}  // namespace oomscope
