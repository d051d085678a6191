#include "replay/lifetimes.h"

#include <algorithm>

#include "caching/sizes.h"
#include "model/fatal_oom.h"

namespace oomscope {
namespace {

uint32_t group_of(int64_t size, uint32_t stream_index) { return stream_index * 2 + (is_small(size) ? 0 : 1); }

void add(LifetimeTable& table, int64_t requested, uint32_t begin, uint32_t end, uint32_t stream_index) {
  if (requested <= 0 || begin >= end) return;
  const int64_t rounded = round_up(requested, kMinBlockSize);
  table.requested.push_back(Lifetime{.size_bytes = requested, .begin = begin, .end = end, .group = 0});
  table.rounded.push_back(
      Lifetime{.size_bytes = rounded, .begin = begin, .end = end, .group = group_of(rounded, stream_index)});
}

}  // namespace

LifetimeTable lifetimes_of(const Verification& verification, uint32_t until) {
  const Timeline& timeline = verification.timeline;
  const uint32_t events = static_cast<uint32_t>(timeline.trace().size_events());
  const uint32_t end_of_time = std::min(until, events) + 1;
  LifetimeTable table;
  for (size_t stream = 0; stream <= timeline.trace().streams.size(); ++stream) {
    table.page_bytes.push_back(kSmallBuffer);
    table.page_bytes.push_back(verification.config.settings.large_segment_size_bytes);
  }
  table.requested.reserve(timeline.allocations.size());
  table.rounded.reserve(timeline.allocations.size());
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.begin != kNoEvent && allocation.begin >= until) continue;
    const uint32_t begin = allocation.begin == kNoEvent ? 0 : allocation.begin + 1;
    const uint32_t end =
        allocation.free_completed == kNoEvent ? end_of_time : std::min(allocation.free_completed + 1, end_of_time);
    add(table, allocation.requested, begin, end, allocation.stream_index);
  }
  return table;
}

void add_request(LifetimeTable& table, const Verification& verification, uint32_t event, int64_t size_bytes) {
  const Trace& trace = verification.timeline.trace();
  add(table, size_bytes, event, event + 1, trace.stream_index.at(event));
}

LifetimeTable lifetimes_to_complete(const Verification& verification) {
  LifetimeTable table = lifetimes_of(verification);
  const Trace& trace = verification.timeline.trace();
  if (const std::optional<uint32_t> failed = fatal_oom(trace)) {
    add_request(table, verification, *failed, trace.size[*failed]);
  }
  return table;
}

}  // namespace oomscope
