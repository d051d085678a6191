// pending-frees: blocks that the program has freed wait for another stream (record_stream) before they can be used
// again, and they are many.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_pending_frees(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  const int64_t pending = run.instant().active_bytes - run.instant().allocated_bytes;
  const int64_t retries = run.diagnosis->verification->replay->allocator().stats().num_alloc_retries;
  constexpr double kShare = 0.25;
  const double share =
      static_cast<double>(pending) / static_cast<double>(std::max<int64_t>(run.instant().active_bytes, 1));
  const bool much = share >= kShare || (run.failed() && pending >= run.request() && share >= kShare / 4);
  if (!much || (!run.failed() && retries == 0)) return {};
  StackId stack = StackId::none;
  int64_t largest = 0;
  int64_t blocks = 0;
  for (const Allocation& allocation : run.timeline().allocations) {
    const uint32_t event = run.instant().event;
    const bool waits = allocation.free_requested != kNoEvent && allocation.free_requested <= event &&
                       (allocation.free_completed == kNoEvent || allocation.free_completed > event);
    if (!waits) continue;
    blocks += 1;
    if (allocation.requested <= largest) continue;
    largest = allocation.requested;
    stack = allocation.stack;
  }
  Finding finding = finding_of(run, "pending-frees");
  finding.bytes = pending;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(pending))
                      .with("blocks", format_count(blocks))
                      .with("retries", format_count(retries))
                      .with("site", site_of(run, stack));
  finding.confidence = Confidence::high;
  finding.because = because("freed-not-returned");
  add_site(finding, run, "pending", stack, pending, blocks);
  add_changes(finding, run, pending);
  return {finding};
}

}  // namespace oomscope
