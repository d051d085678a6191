#include "replay/pool_guess.h"

#include <algorithm>
#include <map>

#include "replay/recorded_device.h"

namespace oomscope {
namespace {

// Marks pools that we named: no real counter gets there.
constexpr uint64_t kGuessedPool = uint64_t{1} << 40;

}  // namespace

// All memory that was obtained, or there at the start, and released again within the recording.
PoolGuess::PoolGuess(const Timeline& timeline) : timeline_(timeline) {
  const Trace& trace = timeline.trace();
  if (!trace.pool.empty()) return;  // torch 2.12 on: nothing to guess
  std::map<uint64_t, Instance> open;
  uint32_t breath = 0;
  for (const uint32_t event : timeline.driver_events) {
    const uint64_t address = trace.addr[event];
    const int64_t size = trace.size[event];
    const Action action = trace.action[event];
    if (action == Action::segment_alloc || action == Action::segment_map) {
      open[address] = Instance{.address = address, .size = size, .begin = event, .end = kNoEvent, .breath = 0};
      continue;
    }
    if (action != Action::segment_free && action != Action::segment_unmap) continue;
    breath = std::max(breath, event);
    while (breath < trace.size_events() && is_driver_event(trace.action[breath])) ++breath;
    auto entry = open.lower_bound(address);
    const bool was_there = entry == open.end() || entry->first - address >= static_cast<uint64_t>(size);
    if (was_there) {
      instances_.push_back(Instance{.address = address, .size = size, .begin = 0, .end = event, .breath = breath});
    }
    while (entry != open.end() && entry->first - address < static_cast<uint64_t>(size)) {
      entry->second.end = event;
      entry->second.breath = breath;
      instances_.push_back(entry->second);
      entry = open.erase(entry);
    }
  }
}

PoolGuess::Instance* PoolGuess::find(uint64_t address, uint32_t event) {
  for (Instance& instance : instances_) {
    if (address - instance.address < static_cast<uint64_t>(instance.size) && instance.begin <= event &&
        event <= instance.end) {
      return &instance;
    }
  }
  return nullptr;
}

bool PoolGuess::learn(const Difference& difference) {
  const Trace& trace = timeline_.trace();
  if (difference.event >= trace.size_events()) return false;
  // Where the recording went is the better witness; else where the engine went although the recording did not.
  Instance* blamed = find(trace.addr[difference.event], difference.event);
  if (blamed == nullptr || blamed->is_private) blamed = find(difference.engine_address, difference.event);
  if (blamed == nullptr || blamed->is_private) return false;
  const uint32_t breath = blamed->breath;
  const PoolId pool{0, kGuessedPool + breath};
  // A program's empty_cache releases the default pool's segments in the same breath: then only the one is taken.
  bool alone = false;
  for (uint32_t i = blamed->end; i < breath && !alone; ++i) {
    const StackTable& stacks = timeline_.snapshot->stacks;
    const uint32_t stack = static_cast<uint32_t>(trace.stack[i]);
    for (uint32_t f = stacks.starts[stack]; f < stacks.starts[stack + 1]; ++f) {
      const Frame& frame = stacks.frames[stacks.frame_ids[f]];
      alone = alone || timeline_.snapshot->strings.text(frame.name) == "empty_cache";
    }
  }
  for (Instance& instance : instances_) {
    if (&instance != blamed && (alone || instance.breath != breath)) continue;
    if (instance.is_private) continue;
    instance.is_private = true;
    spans_.push_back(PoolSpan{.address = instance.address,
                              .size = instance.size,
                              .begin = instance.begin,
                              .end = instance.end,
                              .pool = pool});
  }
  return true;
}

}  // namespace oomscope
