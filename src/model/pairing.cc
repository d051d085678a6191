#include "model/pairing.h"

#include <algorithm>
#include <utility>

namespace oomscope {

Pairing::Pairing(size_t events) : live_(std::min<size_t>(events, 1 << 14)) {
  // A third of the events are allocs where all is freed again; room that is not used costs nothing.
  pairs_.allocations.reserve(events / 2 + 1);
  pairs_.allocation_of.reserve(events);
}

void Pairing::add(const EventColumns& columns, size_t end) {
  columns_ = columns;
  const size_t start = done();
  pairs_.allocation_of.resize(end);
  (void)touched_[0].touch(spare_room(pairs_.allocation_of));
  (void)touched_[1].touch(spare_room(pairs_.allocations));
  constexpr size_t kAhead = 16;  // events: the table is larger than the cache
  for (size_t i = start; i < end; ++i) {
    if (end - i > kAhead) live_.prefetch(columns.addr[i + kAhead]);
    uint32_t id = kNoAllocation;
    const uint32_t event = static_cast<uint32_t>(i);
    switch (columns.action[i]) {
      case Action::alloc: id = begin(event); break;
      case Action::free_requested: id = free_requested(event); break;
      case Action::free_completed: id = free_completed(event); break;
      case Action::segment_alloc:
      case Action::segment_free:
      case Action::segment_map:
      case Action::segment_unmap:
      case Action::oom: pairs_.driver_events.push_back(event); break;
      default: break;
    }
    pairs_.allocation_of[i] = id;
  }
}

Pairs Pairing::finish() {
  live_.for_each([this](uint32_t id) {
    if (id != kNoAllocation) pairs_.unfinished.push_back(id);
  });
  std::sort(pairs_.unfinished.begin(), pairs_.unfinished.end());
  pairs_.unfinished.erase(std::unique(pairs_.unfinished.begin(), pairs_.unfinished.end()), pairs_.unfinished.end());
  return std::move(pairs_);
}

uint32_t Pairing::add_allocation(const AllocationEvents& events) {
  pairs_.allocations.push_back(events);
  return static_cast<uint32_t>(pairs_.allocations.size() - 1);
}

uint32_t Pairing::begin(uint32_t event) {
  const uint32_t id = add_allocation({.begin = event});
  uint32_t& there = live_.at(columns_.addr[event], kNoAllocation);
  if (there != kNoAllocation) pairs_.unfinished.push_back(there);  // two live blocks at one address: an event is wrong
  there = id;
  return id;
}

uint32_t Pairing::free_requested(uint32_t event) {
  const uint64_t address = columns_.addr[event];
  uint32_t* found = live_.find(address);
  if (found == nullptr) {
    const uint32_t id = add_allocation({.free_requested = event});
    pairs_.unfinished.push_back(id);
    live_.at(address, kNoAllocation) = id;
    return id;
  }
  if (*found == kNoAllocation || pairs_.allocations[*found].free_requested != kNoEvent) {
    pairs_.orphan_frees += 1;
    return kNoAllocation;
  }
  pairs_.allocations[*found].free_requested = event;
  return *found;
}

uint32_t Pairing::free_completed(uint32_t event) {
  const uint64_t address = columns_.addr[event];
  uint32_t* found = live_.find(address);
  if (found == nullptr) {  // pending when the recording began
    const uint32_t id = add_allocation({.free_completed = event});
    pairs_.unfinished.push_back(id);
    live_.at(address, kNoAllocation) = kNoAllocation;
    return id;
  }
  if (*found == kNoAllocation) {
    pairs_.orphan_frees += 1;
    return kNoAllocation;
  }
  const uint32_t id = *found;
  pairs_.allocations[id].free_completed = event;
  if (pairs_.allocations[id].free_requested == kNoEvent) pairs_.unfinished.push_back(id);
  *found = kNoAllocation;
  return id;
}

Pairs pair_events(const Trace& trace) {
  Pairing pairing(trace.size_events());
  pairing.add(EventColumns::of(trace), trace.size_events());
  return pairing.finish();
}

}  // namespace oomscope
