// Building a timeline: pair the events, find the pools, then hand over to start_state.cc.
#include "model/timeline.h"

#include <algorithm>
#include <map>

#include "model/pairing.h"
#include "model/reconcile.h"
#include "model/start_state.h"

namespace oomscope {
namespace {

uint32_t pool_index(Timeline& timeline, PoolId pool) {
  auto found = std::find(timeline.pools.begin(), timeline.pools.end(), pool);
  if (found == timeline.pools.end()) {
    timeline.pools.push_back(pool);
    found = timeline.pools.end() - 1;
  }
  return static_cast<uint32_t>(found - timeline.pools.begin());
}

// From torch 2.12 on every event names its pool. Before, an allocation is in the pool of the segment that held its
// address at that time; a segment that was freed before the dump left no trace of its pool and counts as default.
void find_pools(Timeline& timeline) {
  timeline.pools = {PoolId{}};
  const Trace& trace = timeline.trace();
  if (!trace.pool.empty()) {
    for (Allocation& allocation : timeline.allocations) {
      const uint32_t event = first_event_of(allocation);
      if (event != kNoEvent) allocation.pool_index = pool_index(timeline, trace.pool[event]);
    }
    return;
  }
  struct Range {
    uint64_t end;
    uint32_t since;  // the segment was obtained at this event; 0: before the recording or unknown
    uint32_t pool;
  };
  std::map<uint64_t, Range> ranges;
  for (const SnapshotSegment& segment : timeline.snapshot->segments) {
    if (segment.device != timeline.device || segment.pool.is_default()) continue;
    ranges[segment.address] = Range{.end = segment.address + static_cast<uint64_t>(segment.total_size),
                                    .since = 0,
                                    .pool = pool_index(timeline, segment.pool)};
  }
  if (ranges.empty()) return;
  for (uint32_t event : timeline.driver_events) {
    if (trace.action[event] != Action::segment_alloc) continue;
    auto found = ranges.find(trace.addr[event]);
    if (found != ranges.end()) found->second.since = event;  // the last one is the one that is left
  }
  for (Allocation& allocation : timeline.allocations) {
    auto above = ranges.upper_bound(allocation.address);
    if (above == ranges.begin()) continue;
    const Range& range = std::prev(above)->second;
    const uint32_t last_event = allocation.free_completed != kNoEvent ? allocation.free_completed : kNoEvent - 1;
    if (allocation.address < range.end && (range.since == 0 || last_event > range.since)) {
      allocation.pool_index = range.pool;
    }
  }
}

// What replay found out about pools that were gone at the end.
void apply_pool_spans(Timeline& timeline, const std::vector<PoolSpan>& spans) {
  for (const PoolSpan& span : spans) {
    const uint32_t index = pool_index(timeline, span.pool);
    for (Allocation& allocation : timeline.allocations) {
      if (allocation.address - span.address >= static_cast<uint64_t>(span.size)) continue;
      const uint32_t begin = allocation.begin == kNoEvent ? 0 : allocation.begin;
      if (begin >= span.begin && begin < span.end) allocation.pool_index = index;
    }
  }
}

}  // namespace

Timeline build_timeline(const Snapshot& snapshot, int32_t device, const RoundSize& round,
                        const std::vector<PoolSpan>& pool_spans) {
  return build_timeline(snapshot, device, round, pool_spans, pair_events(snapshot.traces[static_cast<size_t>(device)]));
}

Timeline build_timeline(const Snapshot& snapshot, int32_t device, const RoundSize& round,
                        const std::vector<PoolSpan>& pool_spans, Pairs pairs) {
  Timeline timeline;
  timeline.snapshot = &snapshot;
  timeline.device = device;
  timeline.allocations = std::move(pairs.allocations);
  timeline.allocation_of = std::move(pairs.allocation_of);
  timeline.driver_events = std::move(pairs.driver_events);
  timeline.unfinished = std::move(pairs.unfinished);
  timeline.orphan_frees = pairs.orphan_frees;
  reconcile_pairs(timeline);
  find_pools(timeline);
  apply_pool_spans(timeline, pool_spans);
  rebuild_start_state(timeline, round);
  return timeline;
}

std::vector<int32_t> devices_of(const Snapshot& snapshot) {
  std::vector<int32_t> devices;
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    if (snapshot.traces[i].size_events() > 0) devices.push_back(static_cast<int32_t>(i));
  }
  if (!devices.empty()) return devices;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (std::find(devices.begin(), devices.end(), segment.device) == devices.end()) devices.push_back(segment.device);
  }
  return devices;
}

}  // namespace oomscope
