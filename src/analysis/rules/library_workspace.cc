// library-workspace: scratch of cuBLAS or cuDNN is much of what is live: a handle for each stream and thread, or a
// convolution plan that wants gigabytes.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// The library's own frames say so, or the same call got workspaces of this size before.
bool asks_for_workspace(const RunFacts& run) {
  if (run.structure.traits(run.instant().stack).has(Trait::library_workspace)) return true;
  return std::any_of(run.live.begin(), run.live.end(), [&](uint32_t id) {
    const Allocation& allocation = run.timeline().allocations[id];
    return run.categories[id].category == Category::workspace && allocation.stack == run.instant().stack &&
           allocation.requested == run.request();
  });
}

}  // namespace

std::vector<Finding> find_library_workspace(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const bool asks = asks_for_workspace(run);
  const int64_t bytes = run.bytes_at(Category::workspace) + (asks ? run.request() : 0);
  constexpr double kShare = 0.25;
  if (run.share(bytes) < kShare) return {};
  // Two of cuBLAS's, for forward and for backward, every job has.
  constexpr int64_t kUsual = 2 * (int64_t{32} << 20);
  if (bytes < kUsual + kUsual / 2) return {};
  int64_t largest = 0;
  StackId stack = run.instant().stack;
  int64_t blocks = 0;
  for (uint32_t id : run.live) {
    if (run.categories[id].category != Category::workspace) continue;
    blocks += 1;
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.requested <= largest) continue;
    largest = allocation.requested;
    stack = allocation.stack;
  }
  Finding finding = finding_of(run, "library-workspace");
  finding.bytes = bytes;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(bytes))
                      .with("blocks", format_count(blocks))
                      .with("site", site_of(run, stack));
  finding.confidence = Confidence::medium;
  finding.because = because("size-of-workspace");
  finding.surer = surer("record-cpp-frames");
  add_site(finding, run, "workspace", stack, bytes, blocks);
  add_changes(finding, run, bytes);
  return {finding};
}

}  // namespace oomscope
