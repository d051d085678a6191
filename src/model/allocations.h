// Allocations: who was allocated when, and freed when.
//
// What an event tells of an allocation stays in the trace's columns: kept here are its events alone, and what no event
// tells. A million events are 333,000 allocations, and memory that nobody touches costs nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/index_iterator.h"
#include "base/large_vector.h"
#include "base/zero_table.h"
#include "types/ids.h"
#include "types/snapshot.h"

namespace oomscope {

inline constexpr uint32_t kNoEvent = 0xffffffff;  // "not in this recording"
inline constexpr uint32_t kNoAllocation = 0xffffffff;

// The events of an allocation.
struct AllocationEvents {
  uint32_t begin = kNoEvent;  // alloc event
  uint32_t free_requested = kNoEvent;
  uint32_t free_completed = kNoEvent;
};

// Allocation i of the recording. Ghosts have begin == kNoEvent. For a ghost of a recording, `size` is the block's size
// as far as the recording tells (exact if it is still alive at the end); for all others 0: the engine knows.
struct Allocation : AllocationEvents {
  uint64_t address = 0;
  int64_t requested = 0;
  int64_t size = 0;
  uint32_t stream_index = 0;  // into Trace::streams
  uint32_t pool_index = 0;    // into Timeline::pools
  StackId stack = StackId::none;
};

// Has it happened by then? kNoEvent never does, and kNoEvent as `by` is the time before the first event.
[[nodiscard]] constexpr bool has_happened(uint32_t event, uint32_t by) {
  static_assert(kNoEvent + 1 == 0);
  return event < by + 1;
}

// Is it live, or pending, right after the event, as far as the recording goes?
[[nodiscard]] constexpr bool is_there_after(const AllocationEvents& events, uint32_t event) {
  // Without branches: which of many it is cannot be guessed.
  const bool begun = (events.begin == kNoEvent) | has_happened(events.begin, event);
  return begun & !has_happened(events.free_completed, event);
}
// What the replay could not place (size 0) never is.
[[nodiscard]] inline bool is_live_after(const Allocation& allocation, uint32_t event) {
  return allocation.size != 0 && is_there_after(allocation, event);
}

// The event by which the recording knows of it first; kNoEvent if none does.
[[nodiscard]] constexpr uint32_t first_event_of(const AllocationEvents& events) {
  if (events.begin != kNoEvent) return events.begin;
  return events.free_requested != kNoEvent ? events.free_requested : events.free_completed;
}

class Allocations {
 public:
  Allocations() = default;
  // Each of `events` has an event; in the order of their first events. `trace` must outlive them.
  Allocations(const Trace& trace, LargeVector<AllocationEvents> events)
      : trace_(&trace), events_(std::move(events)), sizes_(events_.size()) {}

  [[nodiscard]] size_t size() const { return events_.size() + silent_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] uint64_t address_of(size_t id) const {
    return id < events_.size() ? trace_->addr[first_event_of(events_[id])] : silent_[id - events_.size()].address;
  }
  [[nodiscard]] int64_t requested_of(size_t id) const {
    return id < events_.size() ? trace_->size[first_event_of(events_[id])] : silent_[id - events_.size()].requested;
  }
  // All of it, its size too: not while somebody sets that.
  [[nodiscard]] Allocation operator[](size_t id) const {
    if (id >= events_.size()) return silent_[id - events_.size()];
    const AllocationEvents events = events_[id];
    const uint32_t first = first_event_of(events);
    return Allocation{events,
                      address_of(id),
                      requested_of(id),
                      sizes_[id],
                      trace_->stream_index.at(first),
                      pool_index(id),
                      events.begin != kNoEvent ? trace_->stack[first] : ghost_stack(id)};
  }
  [[nodiscard]] const AllocationEvents& events_of(size_t id) const {
    return id < events_.size() ? events_[id] : silent_[id - events_.size()];
  }
  [[nodiscard]] bool is_live_after(size_t id, uint32_t event) const {
    return is_there_after(events_of(id), event) && size_of(id) != 0;
  }
  [[nodiscard]] int64_t size_of(size_t id) const {
    return id < events_.size() ? sizes_[id] : silent_[id - events_.size()].size;
  }
  // The first that the recording does not know of before `event`.
  [[nodiscard]] uint32_t first_from(uint32_t event) const {
    const auto found = std::partition_point(events_.begin(), events_.end(), [event](const AllocationEvents& events) {
      return first_event_of(events) < event;
    });
    return static_cast<uint32_t>(found - events_.begin());
  }
  // Of one that has an event.
  [[nodiscard]] uint32_t pool_index(size_t id) const { return pools_.empty() ? 0 : pools_[id]; }

  // One without any event, live from before the first to after the last. Its number.
  uint32_t add_silent(const Allocation& allocation) {
    silent_.push_back(allocation);
    return static_cast<uint32_t>(size() - 1);
  }
  // Of different allocations by several threads at once, if they like.
  void set_size(size_t id, int64_t size) {
    (id < events_.size() ? sizes_[id] : silent_[id - events_.size()].size) = size;
  }
  // Sizes of [first, last) will be set.
  void touch_sizes(size_t first, size_t last) { sizes_.touch(first, last); }
  void set_pool_index(size_t id, uint32_t index) {
    if (id >= events_.size()) {
      silent_[id - events_.size()].pool_index = index;
      return;
    }
    if (pools_.empty() && index == 0) return;
    if (pools_.empty()) pools_.assign(events_.size(), 0);
    pools_[id] = index;
  }
  // Of a ghost: where it was allocated no event says, but the final blocks may.
  void set_ghost_stack(size_t id, StackId stack) {
    if (id < events_.size()) {
      ghost_stacks_[id] = stack;
    } else {
      silent_[id - events_.size()].stack = stack;
    }
  }

  [[nodiscard]] IndexIterator<Allocations> begin() const { return {*this, 0}; }
  [[nodiscard]] IndexIterator<Allocations> end() const { return {*this, size()}; }

 private:
  [[nodiscard]] StackId ghost_stack(size_t id) const {
    const auto found = ghost_stacks_.find(id);
    return found == ghost_stacks_.end() ? StackId::none : found->second;
  }

  const Trace* trace_ = nullptr;
  LargeVector<AllocationEvents> events_;
  ZeroTable<int64_t> sizes_;        // of events_
  LargeVector<uint32_t> pools_;     // of events_; empty while all are of pool 0
  std::vector<Allocation> silent_;  // behind events_
  std::map<size_t, StackId> ghost_stacks_;
};

}  // namespace oomscope
