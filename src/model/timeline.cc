// Building a timeline: pair the events, find the pools, then hand over to start_state.cc.
#include "model/timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "model/expandable_ranges.h"
#include "model/pairing.h"
#include "model/pool_spans.h"
#include "model/start_state.h"

namespace oomscope {
namespace {

struct PoolRange {
  uint64_t end;
  uint32_t since;  // the segment was obtained at this event; 0: before the recording or unknown
  uint32_t pool;
};
using PoolRanges = std::map<uint64_t, PoolRange>;  // by address

// Pages that were unmapped before the end name no pool, but their range does.
void add_expandable_ranges(Timeline& timeline, PoolRanges& ranges, int64_t large_page_bytes) {
  for (const RangeLife& life : range_lives(timeline, large_page_bytes)) {
    if (life.to != kNoEvent || !life.pool || life.pool->is_default()) continue;
    const uint64_t end = life.address + static_cast<uint64_t>(life.size);
    ranges.erase(ranges.lower_bound(life.address), ranges.lower_bound(end));
    ranges[life.address] = PoolRange{.end = end, .since = life.from, .pool = timeline.pool_index(*life.pool)};
  }
}

// From torch 2.12 on every event names its pool. Before, an allocation is in the pool of the segment that held its
// address at that time; a segment that was freed before the dump left no trace of its pool and counts as default.
void find_pools(Timeline& timeline, int64_t large_page_bytes) {
  timeline.pool_index(PoolId{});
  const Trace& trace = timeline.trace();
  if (!trace.pool.empty()) {
    for (size_t id = 0; id < timeline.allocations.size(); ++id) {
      const uint32_t event = first_event_of(timeline.allocations.events_of(id));
      if (event != kNoEvent) timeline.allocations.set_pool_index(id, timeline.pool_index(trace.pool[event]));
    }
    return;
  }
  PoolRanges ranges;
  for (const SnapshotSegment& segment : timeline.snapshot->segments) {
    if (segment.device != timeline.device || segment.pool.is_default()) continue;
    ranges[segment.address] = PoolRange{.end = segment.address + static_cast<uint64_t>(segment.total_size),
                                        .since = 0,
                                        .pool = timeline.pool_index(segment.pool)};
  }
  if (ranges.empty()) return;
  for (uint32_t event : timeline.driver_events) {
    if (trace.action[event] != Action::segment_alloc) continue;
    auto found = ranges.find(trace.addr[event]);
    if (found != ranges.end()) found->second.since = event;  // the last one is the one that is left
  }
  add_expandable_ranges(timeline, ranges, large_page_bytes);
  for (size_t id = 0; id < timeline.allocations.size(); ++id) {
    const Allocation allocation = timeline.allocations[id];
    auto above = ranges.upper_bound(allocation.address);
    if (above == ranges.begin()) continue;
    const PoolRange& range = std::prev(above)->second;
    const uint32_t last_event = allocation.free_completed != kNoEvent ? allocation.free_completed : kNoEvent - 1;
    if (allocation.address < range.end && (range.since == 0 || last_event > range.since)) {
      timeline.allocations.set_pool_index(id, range.pool);
    }
  }
}

void apply_pool_spans(Timeline& timeline, const std::vector<PoolSpan>& spans) {
  if (spans.empty()) return;
  PoolSpans pools(spans);
  const auto apply = [&](size_t id, uint32_t event) {
    const PoolSpan* span = pools.at(timeline.allocations[id].address, event);
    if (span != nullptr) timeline.allocations.set_pool_index(id, timeline.pool_index(span->pool));
  };
  const size_t count = timeline.allocations.size();
  for (size_t id = 0; id < count; ++id) {
    if (timeline.allocations.events_of(id).begin == kNoEvent) apply(id, 0);
  }
  for (size_t id = 0; id < count; ++id) {  // in the order of their begins
    const uint32_t begin = timeline.allocations.events_of(id).begin;
    if (begin != kNoEvent) apply(id, begin);
  }
}

}  // namespace

Timeline build_timeline(const Snapshot& snapshot, int32_t device, const TimelineOptions& options,
                        std::optional<Pairs> pairs) {
  Timeline timeline;
  timeline.snapshot = &snapshot;
  timeline.device = device;
  timeline.corrected = options.corrected;
  if (!pairs || options.corrected != nullptr) pairs = pair_events(timeline.trace());
  timeline.allocations = Allocations(timeline.trace(), std::move(pairs->allocations));
  timeline.allocation_of = std::move(pairs->allocation_of);
  timeline.driver_events = std::move(pairs->driver_events);
  timeline.unfinished = std::move(pairs->unfinished);
  timeline.orphan_frees = pairs->orphan_frees;
  find_pools(timeline, options.large_page_bytes);
  apply_pool_spans(timeline, options.pool_spans);
  rebuild_start_state(timeline, options);
  return timeline;
}

std::vector<int32_t> devices_of(const Snapshot& snapshot) {
  // Each dump writes an event into the trace of every device, used or not.
  const auto worked = [](const Trace& trace) {
    return std::any_of(trace.action.begin(), trace.action.end(), [](Action a) { return a != Action::snapshot; });
  };
  std::vector<int32_t> devices;
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    if (worked(snapshot.traces[i])) devices.push_back(static_cast<int32_t>(i));
  }
  if (!devices.empty()) return devices;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (std::find(devices.begin(), devices.end(), segment.device) == devices.end()) devices.push_back(segment.device);
  }
  return devices;
}

}  // namespace oomscope
