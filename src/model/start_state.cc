// The state before the first event, or before a later one, reconstructed from the end. What is said of the start holds
// of a later moment alike: its ghosts are what was allocated before it and is freed behind it.
//
// The dump holds the final segments. Undoing the driver events from the last to the first gives the segments of the
// start: what was freed comes back, what was obtained goes. In them lie the ghosts, blocks that were live already:
// they are freed in the window without an alloc, or are still live at its end.
//
//   start    |####ghost a####|......|##ghost b##|...|        a, b: freed or still live; dots: free
//   window                   ^ free a      alloc c behind b while b lives
//
// The size of a ghost that is still live at the end is in the dump. One that was freed is known only by its request:
// its block may be larger, by a tail too small to split off. In the large pool of ordinary segments a free block is
// always larger than 1 MiB, so
//   - a gap of at most 1 MiB behind a ghost is its tail;
//   - an alloc that lands within 1 MiB behind the rounded end while the ghost lives shows where the ghost ends;
//   - else the rounded size is taken, and the ghost counts as uncertain.
// In the small pool and in expandable segments tails are below 512 bytes, so the rounded size is the size.
// Free space between live blocks is one block, since free neighbours merge.
//
// What cannot be rebuilt: peaks and totals before the window, the ages that garbage collection looks at, stale
// requested sizes of free blocks, and the tail of a ghost that nothing in the window shows.
#include "model/start_state.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "model/pool_spans.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr size_t kNearCells = size_t{1} << 14;  // of one mebibyte each
constexpr int64_t kSmallPage = 2 * kMiB;

// A mapped stretch: an ordinary segment, or a run of pages of an expandable one.
struct Run {
  int64_t size = 0;
  StreamId stream{};
  PoolId pool;
  bool is_small = false;
  bool is_expandable = false;
  bool class_is_known = true;  // else is_small is a guess
};
using Runs = std::map<uint64_t, Run>;

StartBlock empty_block(int64_t size, StartState state) {
  return StartBlock{.size = size, .requested_size = 0, .state = state, .allocation = kNoAllocation};
}

uint64_t end_of(const Runs::value_type& entry) { return entry.first + static_cast<uint64_t>(entry.second.size); }

// What a stretch of pages learns from one that it touches.
void join(Run& run, const Run& neighbour) {
  run.size += neighbour.size;
  run.pool = neighbour.pool;
  if (run.class_is_known && !neighbour.class_is_known) return;
  run.is_small = neighbour.is_small;
  run.class_is_known = neighbour.class_is_known;
}

// Adds pages to the expandable runs, joining those that touch.
void add_pages(Runs& runs, uint64_t address, Run run) {
  const uint64_t end = address + static_cast<uint64_t>(run.size);
  auto next = runs.lower_bound(address);
  if (next != runs.begin()) {
    auto before = std::prev(next);
    if (end_of(*before) == address && before->second.is_expandable && before->second.stream == run.stream) {
      join(run, before->second);
      address = before->first;
      runs.erase(before);
    }
  }
  if (next != runs.end() && next->first == end && next->second.is_expandable && next->second.stream == run.stream) {
    join(run, next->second);
    runs.erase(next);
  }
  runs[address] = run;
}

// Takes pages out of the expandable runs.
void remove_pages(Runs& runs, uint64_t address, int64_t size) {
  const uint64_t end = address + static_cast<uint64_t>(size);
  auto found = runs.upper_bound(address);
  if (found != runs.begin()) --found;
  while (found != runs.end() && found->first < end) {
    const auto [begin, run] = *found;
    const uint64_t run_end = begin + static_cast<uint64_t>(run.size);
    if (!run.is_expandable || run_end <= address) {
      ++found;
      continue;
    }
    found = runs.erase(found);
    Run rest = run;
    if (begin < address) {
      rest.size = static_cast<int64_t>(address - begin);
      runs[begin] = rest;
    }
    if (end < run_end) {
      rest.size = static_cast<int64_t>(run_end - end);
      runs[end] = rest;
    }
  }
}

class StartRebuilder {
 public:
  // The state before event `at`.
  StartRebuilder(Timeline& timeline, const TimelineOptions& options, uint32_t at)
      : timeline_(timeline),
        trace_(timeline.trace()),
        snapshot_(*timeline.snapshot),
        options_(options),
        at_(at),
        is_cut_(snapshot_.events_were_cut() && trace_.size_events() > 0) {}

  // The segments, and what else is known now of the ghosts and of the timeline, which only the start writes there.
  std::vector<StartSegment> run() {
    collect_final_runs();
    if (is_cut_) keep_used_segments();
    find_guessed_pools();
    undo_driver_events();
    collect_ghosts();
    size_ghosts_by_neighbours();
    std::vector<StartSegment> segments = build_segments();
    if (is_start()) note_start();
    return segments;
  }

 private:
  void collect_final_runs() {
    for (const SnapshotSegment& segment : snapshot_.segments) {
      if (segment.device != timeline_.device) continue;
      runs_[segment.address] = Run{.size = segment.total_size,
                                   .stream = segment.stream,
                                   .pool = segment.pool,
                                   .is_small = !segment.is_large,
                                   .is_expandable = segment.is_expandable};
    }
  }

  // In a trace that was cut, a final segment is of the start only if the events that are left use it as it is, before
  // any of them obtains or gives back memory in its place.
  void keep_used_segments() {
    Runs undecided = runs_;
    for (size_t i = 0; i < trace_.size_events() && !undecided.empty(); ++i) {
      const uint64_t address = trace_.addr[i];
      switch (trace_.action[i]) {
        case Action::oom:
        case Action::snapshot:
        case Action::annotate:
        case Action::unknown: continue;
        case Action::segment_alloc:
        case Action::segment_map:
        case Action::segment_free:
        case Action::segment_unmap: {
          const uint64_t end = address + static_cast<uint64_t>(std::max<int64_t>(trace_.size[i], 0));
          auto entry = undecided.lower_bound(address);
          if (entry != undecided.begin() && end_of(*std::prev(entry)) > address) --entry;
          while (entry != undecided.end() && entry->first < end) {
            runs_.erase(entry->first);
            entry = undecided.erase(entry);
          }
          break;
        }
        case Action::alloc:
        case Action::free_requested:
        case Action::free_completed: {
          auto found = undecided.upper_bound(address);
          if (found == undecided.begin()) break;
          --found;
          if (address < end_of(*found)) undecided.erase(found);
          break;
        }
      }
    }
    for (const SnapshotSegment& segment : snapshot_.segments) {
      if (segment.device != timeline_.device || undecided.count(segment.address) == 0) continue;
      if (!options_.keeps_final_blocks || segment.active_size == 0) runs_.erase(segment.address);
    }
  }

  // Of the driver's events, those whose memory belonged to a pool that replay found out about.
  void find_guessed_pools() {
    if (options_.pool_spans.empty()) return;
    PoolSpans spans(options_.pool_spans);
    for (const uint32_t event : timeline_.driver_events) {
      const bool releases =
          trace_.action[event] == Action::segment_free || trace_.action[event] == Action::segment_unmap;
      const uint32_t held = releases && event > 0 ? event - 1 : event;  // a span ends with its release
      const PoolSpan* span = spans.at(trace_.addr[event], held);
      if (span != nullptr) guessed_pools_[event] = span->pool;
    }
  }

  [[nodiscard]] PoolId pool_of(uint32_t event) const {
    if (!trace_.pool.empty()) return trace_.pool[event];
    const auto guessed = guessed_pools_.find(event);
    return guessed == guessed_pools_.end() ? PoolId{} : guessed->second;
  }

  void undo_driver_events() {
    for (auto event = timeline_.driver_events.rbegin(); event != timeline_.driver_events.rend(); ++event) {
      const uint32_t i = *event;
      if (i < at_) break;
      const uint64_t address = trace_.addr[i];
      const int64_t size = trace_.size[i];
      Run run{.size = size,
              .stream = trace_.stream(i),
              .pool = pool_of(i),
              .is_small = size == kSmallPage,
              .is_expandable = false};
      switch (trace_.action[i]) {
        case Action::segment_free: runs_[address] = run; break;
        case Action::segment_alloc: runs_.erase(address); break;
        case Action::segment_unmap:
          run.is_expandable = true;
          run.is_small = size % options_.large_page_bytes != 0;
          run.class_is_known = run.is_small;
          add_pages(runs_, address, run);
          break;
        case Action::segment_map:
          note_range(address, size, run);
          remove_pages(runs_, address, size);
          break;
        default: break;
      }
    }
  }

  // Where expandable ranges begin, as far as map events tell. One map step of the small pool is one page of 2 MiB.
  void note_range(uint64_t address, int64_t size, const Run& event) {
    const auto run = run_of(address);
    const PoolId pool = run != runs_.end() ? run->second.pool : event.pool;
    const auto key = std::tuple(pool, event.stream, size == kSmallPage);
    auto [entry, made] = lowest_map_.try_emplace(key, address);
    if (!made) entry->second = std::min(entry->second, address);
  }

  // --- ghosts ----------------------------------------------------------------------------------------------------

  // Of the start: live in front of the first event. Of a later moment: live then.
  struct Ghost {
    uint32_t allocation;
    int64_t size;
    bool exact = false;
    bool pending = false;
  };

  [[nodiscard]] bool is_start() const { return at_ == 0; }
  [[nodiscard]] bool is_before(uint32_t event) const { return event != kNoEvent && event < at_; }

  void collect_ghosts() {
    // They are in the order of their first events.
    const Allocations& allocations = timeline_.allocations;
    const uint32_t first_later = allocations.first_from(at_);
    for (uint32_t id = 0; id < first_later; ++id) {
      if (!is_before(allocations.events_of(id).free_completed)) collect_ghost(id);
    }
    for (const uint32_t later : timeline_.unfinished) {
      if (later >= first_later && allocations.events_of(later).begin == kNoEvent) collect_ghost(later);
    }
    if (!is_start()) {  // those without any event, which the start has added
      for (size_t last = allocations.size();
           last-- > first_later && first_event_of(allocations.events_of(last)) == kNoEvent;) {
        collect_ghost(static_cast<uint32_t>(last));
      }
    }
    if (!is_cut_ || options_.keeps_final_blocks) match_final_blocks();
  }

  void collect_ghost(uint32_t id) {
    const Allocations& all = timeline_.allocations;
    const AllocationEvents& events = all.events_of(id);
    const uint64_t address = all.address_of(id);
    const auto run = run_of(address);
    if (run == runs_.end()) {
      orphan_frees_ += 1;  // freed, but not inside any segment
      return;
    }
    const int64_t rounded = options_.round(std::max<int64_t>(all.requested_of(id), 1));
    const bool was_pending =
        events.begin == kNoEvent && events.free_requested == kNoEvent && events.free_completed != kNoEvent;
    // Sizes of those that begin in the recording are set by a replay, which may be under way.
    const bool knows_size = !is_start() && events.begin == kNoEvent && all.size_of(id) != 0;
    ghosts_[address] = Ghost{.allocation = id,
                             .size = knows_size ? all.size_of(id) : rounded,
                             .exact = knows_size,
                             .pending = was_pending || is_before(events.free_requested)};
    if (!run->second.class_is_known) {
      run->second.is_small = rounded <= kMiB;
      run->second.class_is_known = true;
    }
  }

  // What is live at the end and was not allocated in the trace was there at the start, at the size that it has.
  void match_final_blocks() {
    std::map<uint64_t, const SnapshotBlock*> live_at_end;
    for (const SnapshotSegment& segment : snapshot_.segments) {
      if (segment.device != timeline_.device) continue;
      for (uint32_t b = 0; b < segment.block_count; ++b) {
        const SnapshotBlock& block = snapshot_.blocks[segment.first_block + b];
        if (block.state != BlockState::inactive) live_at_end[block.address] = &block;
      }
    }
    if (is_cut_) erase_touched(live_at_end);
    for (uint32_t id : timeline_.unfinished) {
      if (timeline_.allocations.events_of(id).free_completed != kNoEvent) continue;
      const uint64_t address = timeline_.allocations.address_of(id);
      const auto found = live_at_end.find(address);
      if (found == live_at_end.end()) continue;
      const auto ghost = ghosts_.find(address);
      if (ghost != ghosts_.end() && ghost->second.allocation == id) {
        ghost->second.size = found->second->size;
        ghost->second.exact = true;
        if (is_start()) timeline_.allocations.set_ghost_stack(id, found->second->stack);
      }
      live_at_end.erase(found);
    }
    if (!is_start()) return;  // what has no event at all has been found with the start
    for (const auto& [address, block] : live_at_end) add_silent_ghost(address, *block);
  }

  // Blocks in whose place something was allocated or freed are of a later time.
  void erase_touched(std::map<uint64_t, const SnapshotBlock*>& blocks) const {
    for (size_t i = 0; i < trace_.size_events() && !blocks.empty(); ++i) {
      const Action action = trace_.action[i];
      if (action != Action::alloc && action != Action::free_requested && action != Action::free_completed) continue;
      const uint64_t address = trace_.addr[i];
      const uint64_t end = address + static_cast<uint64_t>(std::max<int64_t>(trace_.size[i], 1));
      auto entry = blocks.lower_bound(address);
      if (entry != blocks.begin()) {
        const auto before = std::prev(entry);
        if (before->first + static_cast<uint64_t>(before->second->size) > address) entry = before;
      }
      while (entry != blocks.end() && entry->first < end) entry = blocks.erase(entry);
    }
  }

  // Live from before the first event to after the last, without any event.
  void add_silent_ghost(uint64_t address, const SnapshotBlock& block) {
    auto run = run_of(address);
    if (run == runs_.end() || address + static_cast<uint64_t>(block.size) > end_of(*run)) return;
    auto stream = std::find(trace_.streams.begin(), trace_.streams.end(), run->second.stream);
    const uint32_t id = timeline_.allocations.add_silent({AllocationEvents{}, address, block.requested_size, block.size,
                                                          static_cast<uint32_t>(stream - trace_.streams.begin()),
                                                          timeline_.pool_index(run->second.pool), block.stack});
    const bool pending = block.state == BlockState::active_pending_free;
    ghosts_[address] = Ghost{.allocation = id, .size = block.size, .exact = true, .pending = pending};
  }

  Runs::iterator run_of(uint64_t address) {
    auto found = runs_.upper_bound(address);
    if (found == runs_.begin()) return runs_.end();
    --found;
    return address < end_of(*found) ? found : runs_.end();
  }

  // A ghost whose size nothing has shown yet.
  struct Uncertain {
    uint64_t end;  // rounded
    uint32_t allocation;
    uint32_t death;  // when its free completes
    uint64_t shown_end = ~uint64_t{0};
  };

  // An alloc that lands within 1 MiB behind a ghost while it lives shows where the ghost ends.
  void size_ghosts_by_neighbours() {
    std::vector<Uncertain> uncertain;  // by address
    for (const auto& [address, ghost] : ghosts_) {
      if (ghost.exact) continue;
      const Run& run = run_of(address)->second;
      if (run.is_small || run.is_expandable) continue;
      uncertain.push_back({.end = address + static_cast<uint64_t>(ghost.size),
                           .allocation = ghost.allocation,
                           .death = timeline_.allocations.events_of(ghost.allocation).free_completed});
    }
    look_behind(uncertain);
    for (const Uncertain& each : uncertain) {
      if (each.shown_end == ~uint64_t{0}) continue;
      const uint64_t address = timeline_.allocations.address_of(each.allocation);
      ghosts_[address].size = static_cast<int64_t>(each.shown_end - address);
      ghosts_[address].exact = true;
    }
  }

  void look_behind(std::vector<Uncertain>& uncertain) const {
    std::vector<std::pair<uint32_t, uint64_t>> deaths;  // with the rounded end; the next is the last
    // Few allocs are near one that lives: most are told apart by the mebibyte that they lie in.
    std::vector<uint16_t> near(uncertain.empty() ? 0 : kNearCells);
    const auto count_near = [&near](uint64_t end, int more) {
      for (const uint64_t cell : {end / kMiB, end / kMiB + 1}) {
        uint16_t& count = near[cell % kNearCells];
        if (count != UINT16_MAX) count = static_cast<uint16_t>(count + more);  // so many are never few again
      }
    };
    for (const Uncertain& each : uncertain) {
      count_near(each.end, 1);
      if (each.death != kNoEvent) deaths.emplace_back(each.death, each.end);
    }
    std::sort(deaths.begin(), deaths.end(), std::greater<>());
    for (uint32_t id = timeline_.allocations.first_from(at_); id < timeline_.allocations.size(); ++id) {
      const uint32_t begin = timeline_.allocations.events_of(id).begin;
      if (begin == kNoEvent) continue;
      for (; !deaths.empty() && deaths.back().first <= begin; deaths.pop_back()) count_near(deaths.back().second, -1);
      if (deaths.empty()) return;
      const uint64_t address = trace_.addr[begin];
      if (near[(address / kMiB) % kNearCells] == 0) continue;
      const auto above = std::upper_bound(uncertain.begin(), uncertain.end(), address,
                                          [](uint64_t at, const Uncertain& each) { return at < each.end; });
      if (above == uncertain.begin()) continue;
      Uncertain& below = *std::prev(above);
      if (address - below.end > static_cast<uint64_t>(kMiB) || below.death <= begin) continue;
      below.shown_end = std::min(below.shown_end, address);
    }
  }

  // --- segments --------------------------------------------------------------------------------------------------

  std::vector<StartSegment> build_segments() {
    std::vector<StartSegment> segments;
    std::map<std::tuple<PoolId, StreamId, bool>, StartSegment> ranges;
    for (const auto& [address, run] : runs_) {
      std::vector<StartBlock> blocks = blocks_of(address, run);
      if (!run.is_expandable) {
        segments.push_back(StartSegment{.address = address,
                                        .size = run.size,
                                        .stream = run.stream,
                                        .pool_index = timeline_.pool_index(run.pool),
                                        .is_small = run.is_small,
                                        .is_expandable = false,
                                        .blocks = std::move(blocks)});
        continue;
      }
      const uint64_t base = range_base(address, run);
      StartSegment& range = ranges[{run.pool, run.stream, run.is_small}];
      if (range.blocks.empty()) {
        range = StartSegment{.address = base,
                             .size = 0,
                             .stream = run.stream,
                             .pool_index = timeline_.pool_index(run.pool),
                             .is_small = run.is_small,
                             .is_expandable = true,
                             .blocks = {}};
      }
      const int64_t hole = static_cast<int64_t>(address - range.address) - range.size;
      if (hole > 0) range.blocks.push_back(empty_block(hole, StartState::unmapped));
      range.blocks.insert(range.blocks.end(), blocks.begin(), blocks.end());
      range.size += hole + run.size;
    }
    for (auto& [key, range] : ranges) segments.push_back(std::move(range));
    return segments;
  }

  void note_start() {
    timeline_.starts_mid_life = has_live_;
    timeline_.uncertain_ghosts += uncertain_;
    timeline_.orphan_frees += orphan_frees_;
    for (const auto& [address, ghost] : ghosts_) timeline_.allocations.set_size(ghost.allocation, ghost.size);
    find_reserve();
  }

  uint64_t range_base(uint64_t address, const Run& run) const {
    auto lowest = lowest_map_.find({run.pool, run.stream, run.is_small});
    return lowest == lowest_map_.end() ? address : std::min(address, lowest->second);
  }

  // Ranges are handed out upwards, one behind the other: the distance of two neighbours is the size of one. Neighbours
  // are there at the same time: a range that is wholly unmapped is given back, and the next may begin inside its place.
  void find_reserve() {
    using Key = std::tuple<PoolId, StreamId, bool>;
    struct Range {
      uint64_t base;  // its lowest pages are mapped first
      int64_t mapped;
    };
    std::map<Key, Range> ranges;
    std::set<uint64_t> bases;
    auto map_pages = [&](const Key& key, uint64_t address, int64_t size) {
      auto [entry, made] = ranges.try_emplace(key, Range{address, 0});
      entry->second.mapped += size;
      if (made) note_base(bases, address);
    };
    for (const auto& [address, run] : runs_) {
      if (!run.is_expandable) continue;
      const PoolId pool = trace_.pool.empty() ? PoolId{} : run.pool;  // as the events below name it
      map_pages({pool, run.stream, run.is_small}, range_base(address, run), run.size);
    }
    for (const uint32_t event : timeline_.driver_events) {
      const int64_t size = trace_.size[event];
      const Key key = {trace_.pool.empty() ? PoolId{} : trace_.pool[event], trace_.stream(event),
                       size % options_.large_page_bytes != 0};
      if (trace_.action[event] == Action::segment_map) map_pages(key, trace_.addr[event], size);
      if (trace_.action[event] != Action::segment_unmap) continue;
      const auto range = ranges.find(key);
      if (range == ranges.end() || (range->second.mapped -= size) > 0) continue;
      bases.erase(range->second.base);
      ranges.erase(range);
    }
  }

  void note_base(std::set<uint64_t>& bases, uint64_t base) {
    constexpr uint64_t kSmallestCard = uint64_t{1} << 30;
    const auto [entry, made] = bases.insert(base);
    if (!made) return;
    auto note_distance = [&](uint64_t distance) {
      if (distance < kSmallestCard) return;
      int64_t& reserve = timeline_.expandable_reserve_bytes;
      const auto bytes = static_cast<int64_t>(distance);
      reserve = reserve == 0 ? bytes : std::min(reserve, bytes);
    };
    if (entry != bases.begin()) note_distance(base - *std::prev(entry));
    if (std::next(entry) != bases.end()) note_distance(*std::next(entry) - base);
  }

  std::vector<StartBlock> blocks_of(uint64_t address, const Run& run) {
    std::vector<StartBlock> blocks;
    const uint64_t end = address + static_cast<uint64_t>(run.size);
    auto add_free = [&](uint64_t until) {
      if (until > address) blocks.push_back(empty_block(static_cast<int64_t>(until - address), StartState::free));
      address = std::max(address, until);
    };
    for (auto entry = ghosts_.lower_bound(address); entry != ghosts_.end() && entry->first < end; ++entry) {
      if (entry->first < address) continue;  // inside the block before: damaged input
      Ghost& ghost = entry->second;
      auto following = std::next(entry);
      const uint64_t room_end = following != ghosts_.end() && following->first < end ? following->first : end;
      add_free(entry->first);
      const int64_t room = static_cast<int64_t>(room_end - entry->first);
      ghost.size = std::min(ghost.size, room);
      const int64_t gap = room - ghost.size;
      if (!ghost.exact && !run.is_small && !run.is_expandable) {
        if (gap > 0 && gap <= kMiB) ghost.size += gap;
        if (gap > kMiB) uncertain_ += 1;
      }
      if (is_start()) timeline_.allocations.set_pool_index(ghost.allocation, timeline_.pool_index(run.pool));
      has_live_ = true;
      blocks.push_back(StartBlock{.size = ghost.size,
                                  .requested_size = timeline_.allocations.requested_of(ghost.allocation),
                                  .state = ghost.pending ? StartState::pending : StartState::allocated,
                                  .allocation = ghost.allocation});
      address += static_cast<uint64_t>(ghost.size);
    }
    add_free(end);
    return blocks;
  }

  Timeline& timeline_;
  const Trace& trace_;
  const Snapshot& snapshot_;
  const TimelineOptions& options_;
  const uint32_t at_;
  const bool is_cut_;
  std::map<uint32_t, PoolId> guessed_pools_;  // by event
  Runs runs_;
  std::map<uint64_t, Ghost> ghosts_;  // by address
  bool has_live_ = false;
  int64_t uncertain_ = 0;
  int64_t orphan_frees_ = 0;
  std::map<std::tuple<PoolId, StreamId, bool>, uint64_t> lowest_map_;
};

}  // namespace

void rebuild_start_state(Timeline& timeline, const TimelineOptions& options) {
  timeline.start = StartRebuilder(timeline, options, 0).run();
}

std::vector<StartSegment> state_before(Timeline& timeline, const TimelineOptions& options, uint32_t event) {
  return StartRebuilder(timeline, options, event).run();
}

}  // namespace oomscope
