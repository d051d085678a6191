// pending-frees: blocks that the program has freed wait for another stream (record_stream) before they can be used
// again, and they are many.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

struct Waiting {
  int64_t bytes = 0;
  int64_t blocks = 0;
  StackId stack = StackId::none;  // of the largest
};

// A request that fails waits for all streams before it gives up: what it got back by that was pending until then.
uint32_t asked_at(const RunFacts& run) {
  uint32_t event = run.instant().event;
  if (!run.failed()) return event;
  while (event > 0 && run.trace().action[event] != Action::alloc) --event;
  return event;
}

Waiting waiting_at(const RunFacts& run, uint32_t event) {
  Waiting waiting;
  int64_t largest = 0;
  for (const Allocation& allocation : run.timeline().allocations) {
    const bool waits =
        has_happened(allocation.free_requested, event) && !has_happened(allocation.free_completed, event + 1);
    if (!waits) continue;
    waiting.bytes += allocation.size;
    waiting.blocks += 1;
    if (allocation.requested <= largest) continue;
    largest = allocation.requested;
    waiting.stack = allocation.stack;
  }
  return waiting;
}

}  // namespace

std::vector<Finding> find_pending_frees(const CaseFacts& facts) {
  if (facts.run == nullptr || facts.run->instant().event == kNoEvent) return {};
  const RunFacts& run = *facts.run;
  const Waiting waiting = waiting_at(run, asked_at(run));
  const int64_t retries = run.diagnosis->verification->replay->allocator().stats().num_alloc_retries;
  constexpr double kShare = 0.25;
  const double share =
      static_cast<double>(waiting.bytes) / static_cast<double>(std::max<int64_t>(run.instant().active_bytes, 1));
  const bool much = share >= kShare || (run.failed() && waiting.bytes >= run.request() && share >= kShare / 4);
  if (!much || (!run.failed() && retries == 0)) return {};
  Finding finding = finding_of(run, "pending-frees");
  finding.bytes = waiting.bytes;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(waiting.bytes))
                      .with("blocks", format_count(waiting.blocks))
                      .with("retries", format_count(retries))
                      .with("site", site_of(run, waiting.stack));
  finding.confidence = Confidence::high;
  finding.because = because("freed-not-returned");
  add_site(finding, run, "pending", waiting.stack, waiting.bytes, waiting.blocks);
  add_changes(finding, run, waiting.bytes);
  const Allocations& all = run.timeline().allocations;
  for (uint32_t id = 0; id < all.size(); ++id) {
    const AllocationEvents& events = all.events_of(id);
    const bool waited = events.free_requested != kNoEvent && events.free_completed != events.free_requested + 1;
    if (waited) finding.edits.push_back(RequestEdit{.allocation = id, .free_at = events.free_requested});
  }
  return {finding};
}

}  // namespace oomscope
