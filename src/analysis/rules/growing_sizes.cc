// growing-sizes: a line asks for a little more each time (a cache that is concatenated, a buffer that grows), so that
// no block that it left behind serves its next request: freed segments pile up.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

struct Series {
  int64_t requests = 0;
  int64_t rises = 0;
  int64_t falls = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t rise_bytes = 0;  // sizes of all that rose
};

}  // namespace

std::vector<Finding> find_growing_sizes(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  const Verification& verification = *run.diagnosis->verification;
  const int64_t retries = verification.replay->allocator().stats().num_alloc_retries;
  const int64_t unused = run.failed()
                             ? run.instant().reserved_bytes - run.instant().active_bytes
                             : verification.replay->peak_reserved().bytes - verification.replay->peak_allocated().bytes;
  const int64_t reserved = run.failed() ? run.instant().reserved_bytes : verification.replay->peak_reserved().bytes;
  constexpr double kShare = 0.3;
  const bool leaves = static_cast<double>(unused) >= kShare * static_cast<double>(reserved);
  if (!run.failed() && (retries == 0 || !leaves)) return {};
  std::vector<Series> all(run.structure.stacks.size());
  for (const Allocation& allocation : run.timeline().allocations) {
    constexpr int64_t kLarge = 1 << 20;  // small blocks have a pool of their own
    if (allocation.begin == kNoEvent || allocation.begin > run.basis || allocation.requested <= kLarge) continue;
    Series& series = all[static_cast<uint32_t>(allocation.stack)];
    series.requests += 1;
    if (series.requests == 1) series.first = allocation.requested;
    series.rises += series.requests > 1 && allocation.requested > series.last ? 1 : 0;
    series.falls += allocation.requested < series.last ? 1 : 0;
    series.rise_bytes += allocation.requested > series.last ? allocation.requested : 0;
    series.last = allocation.requested;
  }
  const Series* best = nullptr;
  constexpr int64_t kRises = 8;
  for (const Series& series : all) {
    const bool grows = series.rises >= kRises && series.falls * 20 <= series.requests;
    if (grows && (best == nullptr || series.rise_bytes > best->rise_bytes)) best = &series;
  }
  if (best == nullptr) return {};
  const StackId stack = static_cast<StackId>(best - all.data());
  // Either what it left behind lies unused, or it has grown to be most of what is live.
  int64_t live = run.instant().stack == stack ? run.request() : 0;
  for (const StackGroup& group : run.groups) live += group.stack == stack ? group.bytes : 0;
  if (!(leaves && best->rise_bytes >= unused / 2) && run.share(live) < 0.5) return {};
  Finding finding = finding_of(run, "growing-sizes");
  finding.bytes = std::max(unused, live);
  finding.claim = claim_of(finding)
                      .with("site", site_of(run, stack))
                      .with("first", format_bytes(best->first))
                      .with("last", format_bytes(best->last))
                      .with("rises", format_count(best->rises))
                      .with("live", format_bytes(live - (run.instant().stack == stack ? run.request() : 0)))
                      .with("unused", format_bytes(unused));
  finding.confidence = Confidence::high;
  finding.because = because("sizes-rise");
  add_site(finding, run, "growing", stack, best->rise_bytes, best->requests);
  add_changes(finding, run, unused);
  for (uint32_t id = 0; id < run.timeline().allocations.size(); ++id) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.stack != stack || allocation.begin == kNoEvent || allocation.requested > best->last) continue;
    finding.edits.push_back(RequestEdit{.allocation = id, .size = best->last});
  }
  return {finding};
}

}  // namespace oomscope
