// Timeline: one device's recording with every event tied to its allocation, and the state it starts from.
//
// A trace names addresses; a model needs allocations. The timeline pairs each alloc with its free_requested and
// free_completed, finds the pool that PyTorch before 2.12 does not record, and rebuilds what was there before the first
// event: the segments, the live blocks ("ghosts": freed in the window or alive to its end, but never allocated in it)
// and the free space between them. A recording rarely starts at the beginning, since rings wrap and history is
// switched on late.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/large_vector.h"
#include "model/allocations.h"
#include "types/ids.h"
#include "types/snapshot.h"

namespace oomscope {

// What pairing the events of a trace gives; the members are those of Timeline, where the allocations are more.
struct Pairs {
  LargeVector<AllocationEvents> allocations;  // in the order of their first events
  LargeVector<uint32_t> allocation_of;
  std::vector<uint32_t> driver_events;
  std::vector<uint32_t> unfinished;  // ascending: allocations that lack one of their three events, few among many
  int64_t orphan_frees = 0;
};

enum class StartState : uint8_t { allocated, pending, free, unmapped };

struct StartBlock {
  int64_t size = 0;
  int64_t requested_size = 0;
  StartState state = StartState::free;
  uint32_t allocation = kNoAllocation;
};

// A segment that exists before the first event, or before the one that state_before() was asked for. Expandable: the
// whole address range as far as it is known.
struct StartSegment {
  uint64_t address = 0;
  int64_t size = 0;
  StreamId stream{};
  uint32_t pool_index = 0;
  bool is_small = false;
  bool is_expandable = false;
  std::vector<StartBlock> blocks;  // in address order, sizes sum to size
};

struct Timeline {
  const Snapshot* snapshot = nullptr;  // must outlive the timeline
  int32_t device = 0;
  std::vector<PoolId> pools;                // pools[0] is the default pool
  std::map<PoolId, uint32_t> pool_numbers;  // the way back
  Allocations allocations;
  LargeVector<uint32_t> allocation_of;  // event -> allocation, kNoAllocation for driver events and orphans
  std::vector<uint32_t> driver_events;  // indices of segment_* and oom events, ascending: few among many
  std::vector<uint32_t> unfinished;     // see Pairs; allocations added later are not in it
  std::vector<StartSegment> start;
  bool starts_mid_life = false;            // live blocks at the start
  int64_t uncertain_ghosts = 0;            // live blocks of the start whose exact size nothing in the window shows
  int64_t orphan_frees = 0;                // frees of addresses that cannot have been live
  int64_t expandable_reserve_bytes = 0;    // size of an expandable range as its neighbours tell; 0: unknown
  std::shared_ptr<const Trace> corrected;  // taken for the recorded events, where one of them is wrong; else empty

  // Its index in `pools`, where it is added if it is not there.
  uint32_t pool_index(PoolId pool) {
    const auto [entry, made] = pool_numbers.try_emplace(pool, static_cast<uint32_t>(pools.size()));
    if (made) pools.push_back(pool);
    return entry->second;
  }
  [[nodiscard]] const Trace& trace() const {
    return corrected != nullptr ? *corrected : snapshot->traces[static_cast<size_t>(device)];
  }
};

// A free that no other stream holds up completes within the same call, with its stack. One that was held up completes
// in a later call, whose stack it has: that may stand right behind the request too.
[[nodiscard]] inline bool is_freed_at_once(const Timeline& timeline, uint32_t free_requested) {
  const Trace& trace = timeline.trace();
  const uint32_t next = free_requested + 1;
  return next < trace.size_events() && trace.action[next] == Action::free_completed &&
         timeline.allocation_of[next] == timeline.allocation_of[free_requested] &&
         trace.stack[next] == trace.stack[free_requested];
}

// Memory that belonged to a private pool which was gone when the snapshot was taken: whatever was allocated in
// [address, address + size) by events [begin, end) was in `pool`.
struct PoolSpan {
  uint64_t address = 0;
  int64_t size = 0;
  uint32_t begin = 0;
  uint32_t end = kNoEvent;
  PoolId pool;
};

// The allocator's rounding of a request under the recorded settings: the start state needs the sizes of live blocks
// that only their requests tell of.
using RoundSize = std::function<int64_t(int64_t)>;

struct TimelineOptions {
  RoundSize round;
  int64_t large_page_bytes = int64_t{20} << 20;  // of expandable segments: large_segment_size_mb
  std::vector<PoolSpan> pool_spans = {};
  // Where the file was cut among its events, its segments are of a later time. With this, what they hold and no event
  // that is left touches is taken to have been there all the time, as weights are.
  bool keeps_final_blocks = false;
  std::shared_ptr<const Trace> corrected = nullptr;  // read in place of the recorded events; has as many
};

// `device` is an index that devices_of() returned, or any ordinal whose trace exists.
// `pairs`: those of the recorded events, where they are known already.
[[nodiscard]] Timeline build_timeline(const Snapshot& snapshot, int32_t device, const TimelineOptions& options,
                                      std::optional<Pairs> pairs = std::nullopt);

// Devices that have events, or, if none has, that have segments.
[[nodiscard]] std::vector<int32_t> devices_of(const Snapshot& snapshot);

}  // namespace oomscope
