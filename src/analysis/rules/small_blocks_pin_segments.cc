// small-blocks-pin-segments: many segments are mostly free and cannot be given back or used whole, since a small block
// lives in each.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_small_blocks_pin_segments(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const PinnedSpace& pinned = run.diagnosis->pinned;
  constexpr int64_t kMany = 16;
  constexpr double kShare = 0.2;
  const int64_t segments = pinned.small_segments + pinned.large_segments;
  const int64_t free = pinned.small_free_bytes + pinned.large_free_bytes;
  const int64_t live = pinned.small_live_bytes + pinned.large_live_bytes;
  if (segments < kMany) return {};
  if (static_cast<double>(free) < kShare * static_cast<double>(run.instant().reserved_bytes)) return {};
  StackId stack = StackId::none;
  std::vector<std::pair<StackId, int64_t>> counts;
  for (uint32_t id : run.diagnosis->pinning) {
    const StackId at = run.timeline().allocations[id].stack;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == at; });
    if (found != counts.end()) {
      found->second += 1;
    } else if (counts.size() < 64) {
      counts.emplace_back(at, 1);
    }
  }
  int64_t most = 0;
  for (const auto& [at, count] : counts) {
    if (count <= most) continue;
    most = count;
    stack = at;
  }
  Finding finding = finding_of(run, "small-blocks-pin-segments");
  finding.bytes = free;
  finding.claim = claim_of(finding)
                      .with("segments", format_count(segments))
                      .with("free", format_bytes(free))
                      .with("live", format_bytes(live))
                      .with("site", site_of(run, stack));
  finding.confidence = Confidence::high;
  finding.because = because("replayed-segments");
  add_site(finding, run, "pinning", stack, live, most);
  add_changes(finding, run, free);
  // In one buffer: the first is as large as all, the others are not asked for.
  for (uint32_t id : run.diagnosis->pinning) {
    const bool is_first = finding.edits.empty();
    finding.edits.push_back(is_first ? RequestEdit{.allocation = id, .size = live}
                                     : RequestEdit{.allocation = id, .free_at = 0});
  }
  return {finding};
}

}  // namespace oomscope
