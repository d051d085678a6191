// private-pool: memory in private pools (CUDA graphs, MemPool) serves nobody else, and it is much of what is reserved.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_private_pool(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  int64_t live = 0;
  StackId stack = StackId::none;
  int64_t blocks = 0;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (run.timeline().pools[allocation.pool_index].is_default()) continue;
    live += allocation.requested;
    blocks += 1;
    stack = allocation.stack;
  }
  const int64_t free = run.diagnosis->free_space.private_pool_bytes;
  constexpr double kShare = 0.25;
  const int64_t bytes = live + free;
  if (bytes == 0) return {};
  if (static_cast<double>(bytes) < kShare * static_cast<double>(run.instant().reserved_bytes)) return {};
  Finding finding = finding_of(run, "private-pool");
  finding.bytes = bytes;
  finding.claim = (free == 0 ? Phrase{.key = "cause.private-pool.claim-full"} : claim_of(finding))
                      .with("bytes", format_bytes(bytes))
                      .with("free", format_bytes(free))
                      .with("reserved", format_bytes(run.instant().reserved_bytes));
  finding.confidence = Confidence::high;
  finding.because = because("pool-of-its-own");
  if (stack != StackId::none) add_site(finding, run, "pool", stack, live, blocks);
  add_changes(finding, run, free);
  return {finding};
}

}  // namespace oomscope
