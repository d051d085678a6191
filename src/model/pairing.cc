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
  for (size_t i = start; i < end; ++i) {
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

Pairs Pairing::finish(const Trace& trace) {
  live_.for_each([this](uint32_t id) {
    if (id != kNoAllocation) pairs_.unfinished.push_back(id);
  });
  for (const auto& [id, hidden] : shadowed_) pairs_.unfinished.push_back(hidden);
  std::sort(pairs_.unfinished.begin(), pairs_.unfinished.end());
  pairs_.unfinished.erase(std::unique(pairs_.unfinished.begin(), pairs_.unfinished.end()), pairs_.unfinished.end());
  if (!trace.stream_index.values.empty()) {
    for (Allocation& allocation : pairs_.allocations) {
      allocation.stream_index = trace.stream_index.at(first_event_of(allocation));
    }
  }
  return std::move(pairs_);
}

uint32_t Pairing::new_allocation(uint32_t event) {
  const uint32_t id = static_cast<uint32_t>(pairs_.allocations.size());
  pairs_.allocations.push_back(Allocation{.address = columns_.addr[event],
                                          .requested = columns_.size[event],
                                          .size = 0,
                                          .begin = kNoEvent,
                                          .free_requested = kNoEvent,
                                          .free_completed = kNoEvent,
                                          .stream_index = 0,
                                          .pool_index = 0,
                                          .stack = StackId::none});
  return id;
}

uint32_t Pairing::begin(uint32_t event) {
  const uint32_t id = new_allocation(event);
  Allocation& allocation = pairs_.allocations[id];
  allocation.begin = event;
  allocation.stack = columns_.stack[event];
  uint32_t& there = live_.at(allocation.address, kNoAllocation);
  if (there != kNoAllocation) {
    // Two live blocks at one address: one of the two events is wrong; the frees will tell which. A block from before
    // the recording counts as gone.
    if (pairs_.allocations[there].begin != kNoEvent) shadowed_[id] = there;
  }
  there = id;
  return id;
}

uint32_t Pairing::free_requested(uint32_t event) {
  const uint64_t address = columns_.addr[event];
  uint32_t* found = live_.find(address);
  if (found == nullptr) {
    const uint32_t id = new_allocation(event);
    pairs_.allocations[id].free_requested = event;
    pairs_.unfinished.push_back(id);
    live_.at(address, kNoAllocation) = id;
    return id;
  }
  if (*found != kNoAllocation && !shadowed_.empty()) choose_by_size(*found, columns_.size[event]);
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
    const uint32_t id = new_allocation(event);
    pairs_.allocations[id].free_completed = event;
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
  if (shadowed_.empty()) return id;
  const auto shadow = shadowed_.find(id);
  if (shadow != shadowed_.end()) {
    *found = shadow->second;
    shadowed_.erase(shadow);
  }
  return id;
}

// Of two blocks at one address, the one whose size the free names.
void Pairing::choose_by_size(uint32_t& current, int64_t size) {
  const auto shadow = shadowed_.find(current);
  if (shadow == shadowed_.end() || pairs_.allocations[current].requested == size) return;
  const uint32_t hidden = shadow->second;
  if (pairs_.allocations[hidden].requested != size) return;
  shadowed_.erase(shadow);
  const auto [entry, is_new] = shadowed_.try_emplace(hidden, current);
  if (!is_new) pairs_.unfinished.push_back(std::exchange(entry->second, current));  // three at one address: one is lost
  current = hidden;
}

Pairs pair_events(const Trace& trace) {
  Pairing pairing(trace.size_events());
  pairing.add(EventColumns::of(trace), trace.size_events());
  return pairing.finish(trace);
}

}  // namespace oomscope
