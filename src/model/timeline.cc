// Building a timeline: pair the events, find the pools, then hand over to start_state.cc.
#include "model/timeline.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "model/address_map.h"
#include "model/reconcile.h"
#include "model/start_state.h"

namespace oomscope {
namespace {

// Ties every alloc, free_requested and free_completed to an allocation. A free of an address that was never seen is a
// ghost's; a free of one that was seen but is not live now is an orphan and stays without allocation.
class Pairing {
 public:
  explicit Pairing(Timeline& timeline)
      : timeline_(timeline), trace_(timeline.trace()), live_(std::min<size_t>(trace_.size_events(), 1 << 14)) {}

  void run() {
    const size_t events = trace_.size_events();
    constexpr size_t kRoomForGhosts = 4096;
    const auto allocs = static_cast<size_t>(std::count(trace_.action.begin(), trace_.action.end(), Action::alloc));
    timeline_.allocations.reserve(allocs + kRoomForGhosts);
    timeline_.allocation_of.resize(events);
    for (size_t i = 0; i < events; ++i) {
      uint32_t id = kNoAllocation;
      const uint32_t event = static_cast<uint32_t>(i);
      switch (trace_.action[i]) {
        case Action::alloc: id = begin(event); break;
        case Action::free_requested: id = free_requested(event); break;
        case Action::free_completed: id = free_completed(event); break;
        case Action::segment_alloc:
        case Action::segment_free:
        case Action::segment_map:
        case Action::segment_unmap:
        case Action::oom: timeline_.driver_events.push_back(event); break;
        default: break;
      }
      timeline_.allocation_of[i] = id;
    }
  }

 private:
  uint32_t add(uint32_t event) {
    const uint32_t id = static_cast<uint32_t>(timeline_.allocations.size());
    timeline_.allocations.push_back(Allocation{.address = trace_.addr[event],
                                               .requested = trace_.size[event],
                                               .size = 0,
                                               .begin = kNoEvent,
                                               .free_requested = kNoEvent,
                                               .free_completed = kNoEvent,
                                               .stream_index = trace_.stream_index.at(event),
                                               .pool_index = 0,
                                               .stack = StackId::none});
    return id;
  }

  uint32_t begin(uint32_t event) {
    const uint32_t id = add(event);
    Allocation& allocation = timeline_.allocations[id];
    allocation.begin = event;
    allocation.stack = trace_.stack[event];
    const uint32_t* there = live_.find(allocation.address);
    if (there != nullptr && *there != kNoAllocation && timeline_.allocations[*there].begin != kNoEvent) {
      shadowed_[id] = *there;  // two live blocks at one address: one of the two events is wrong; the frees will tell
    }
    live_.set(allocation.address, id);
    return id;
  }

  uint32_t free_requested(uint32_t event) {
    const uint64_t address = trace_.addr[event];
    uint32_t* found = live_.find(address);
    if (found == nullptr) {
      const uint32_t id = add(event);
      timeline_.allocations[id].free_requested = event;
      live_.set(address, id);
      return id;
    }
    if (*found != kNoAllocation && !shadowed_.empty()) choose_by_size(*found, trace_.size[event]);
    if (*found == kNoAllocation || timeline_.allocations[*found].free_requested != kNoEvent) {
      timeline_.orphan_frees += 1;
      return kNoAllocation;
    }
    timeline_.allocations[*found].free_requested = event;
    return *found;
  }

  uint32_t free_completed(uint32_t event) {
    const uint64_t address = trace_.addr[event];
    uint32_t* found = live_.find(address);
    if (found == nullptr) {  // pending when the recording began
      const uint32_t id = add(event);
      timeline_.allocations[id].free_completed = event;
      live_.set(address, kNoAllocation);
      return id;
    }
    if (*found == kNoAllocation) {
      timeline_.orphan_frees += 1;
      return kNoAllocation;
    }
    const uint32_t id = *found;
    timeline_.allocations[id].free_completed = event;
    *found = kNoAllocation;
    const auto shadow = shadowed_.find(id);
    if (shadow != shadowed_.end()) {
      *found = shadow->second;
      shadowed_.erase(shadow);
    }
    return id;
  }

  // Of two blocks at one address, the one whose size the free names.
  void choose_by_size(uint32_t& current, int64_t size) {
    const auto shadow = shadowed_.find(current);
    if (shadow == shadowed_.end() || timeline_.allocations[current].requested == size) return;
    const uint32_t hidden = shadow->second;
    if (timeline_.allocations[hidden].requested != size) return;
    shadowed_.erase(shadow);
    shadowed_[hidden] = current;
    current = hidden;
  }

  Timeline& timeline_;
  const Trace& trace_;
  AddressMap live_;
  std::unordered_map<uint32_t, uint32_t> shadowed_;  // allocation -> the one it hides at its address
};

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
      const uint32_t event = allocation.begin != kNoEvent            ? allocation.begin
                             : allocation.free_requested != kNoEvent ? allocation.free_requested
                                                                     : allocation.free_completed;
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
  Timeline timeline;
  timeline.snapshot = &snapshot;
  timeline.device = device;
  Pairing(timeline).run();
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
