#include "replay/exact_replay.h"

#include <algorithm>

#include "base/bytes_text.h"
#include "replay/recorded_device.h"

namespace oomscope {
namespace {

// The card's memory from the size of an expandable range.
int64_t total_from_reserve(int64_t reserve_bytes) {
  return reserve_bytes == 0 ? kBoundlessCard : total_of_range(reserve_bytes);
}

// The segments in which the addresses lie; `addresses` ascending. Ranges whose length nothing tells overlap: the one
// that begins nearest holds an address.
std::vector<const Segment*> segments_of(const std::vector<uint64_t>& addresses, std::span<Segment* const> segments) {
  std::vector<const Segment*> near;
  std::vector<const Segment*> holders;
  if (addresses.empty()) return holders;
  for (const Segment* segment : segments) {
    const uint64_t end = segment->address + static_cast<uint64_t>(segment->size_bytes);
    if (segment->address <= addresses.back() && end > addresses.front()) near.push_back(segment);
  }
  std::sort(near.begin(), near.end(), [](const Segment* a, const Segment* b) { return a->address < b->address; });
  for (const uint64_t address : addresses) {
    const auto above = std::upper_bound(near.begin(), near.end(), address,
                                        [](uint64_t at, const Segment* segment) { return at < segment->address; });
    if (above == near.begin()) continue;
    const Segment* below = *std::prev(above);
    if (address - below->address < static_cast<uint64_t>(below->size_bytes)) holders.push_back(below);
  }
  return holders;
}

}  // namespace

ExactReplay::ExactReplay(Timeline& timeline, const ReplayConfig& config, const std::vector<StartSegment>& start,
                         uint32_t begin)
    : timeline_(timeline), trace_(timeline.trace()), config_(config), position_(begin) {
  device_ = std::make_unique<RecordedDevice>(
      *this, trace_, total_from_reserve(config.range_bytes.value_or(timeline.expandable_reserve_bytes)));
  allocator_ = std::make_unique<CachingAllocator>(config.rules, config.settings, *device_);
  allocator_->set_memory_limit(config.limit_bytes);
  blocks_.resize(timeline.allocations.size());
  const StringTable& strings = timeline.snapshot->strings;
  for (uint32_t id = 0; id < strings.size(); ++id) {
    if (strings.text(StringId{id}) == "empty_cache") empty_cache_name_ = StringId{id};
  }
  from_the_beginning_ = begin == 0 && (start.empty() || starts_after_one_tensor());
  if (begin == 0 && starts_after_one_tensor()) {
    make_first_tensor();
    peak_reserved_.bytes = allocator_->reserved_bytes();
  } else {
    adopt(start);
  }
}

ExactReplay::~ExactReplay() = default;

bool ExactReplay::starts_after_one_tensor() const {
  if (timeline_.start.size() != 1 || timeline_.starts_mid_life || !timeline_.snapshot->complete) return false;
  const StartSegment& segment = timeline_.start[0];
  return segment.is_small && segment.size == kSmallBuffer && segment.blocks.size() == 1 &&
         segment.blocks[0].state == StartState::free && timeline_.pools[segment.pool_index].is_default();
}

void ExactReplay::make_first_tensor() {
  constexpr int64_t kOneFloat = 4;
  device_->give(timeline_.start[0].address);
  Block* block = allocator_->malloc_in_pool(kOneFloat, timeline_.start[0].stream, PoolId{});
  if (block != nullptr) allocator_->free(block);
}

void ExactReplay::adopt(const std::vector<StartSegment>& start) {
  for (const StartSegment& segment : start) {
    std::vector<AdoptedBlock> adopted;
    adopted.reserve(segment.blocks.size() + 1);
    int64_t size = 0;
    for (const StartBlock& block : segment.blocks) {
      size += block.size;
      adopted.push_back(AdoptedBlock{.size = block.size,
                                     .requested_size = block.requested_size,
                                     .allocated = block.state == StartState::allocated,
                                     .pending = block.state == StartState::pending,
                                     .mapped = block.state != StartState::unmapped});
    }
    if (segment.is_expandable) {  // the range goes on, unmapped, as far as ranges of this card do
      const int64_t page = segment.is_small ? kSmallBuffer : config_.settings.large_segment_size_bytes;
      const int64_t range = expandable_range(device_->total_bytes(), page);
      if (range > size) {
        const bool joins = !adopted.empty() && !adopted.back().mapped;
        if (joins) {
          adopted.back().size += range - size;
        } else {
          adopted.push_back(AdoptedBlock{
              .size = range - size, .requested_size = 0, .allocated = false, .pending = false, .mapped = false});
        }
        size = range;
      }
    }
    const std::vector<Block*> owned =
        allocator_->adopt_segment(segment.address, size, segment.stream, timeline_.pools[segment.pool_index],
                                  segment.is_small, segment.is_expandable, adopted);
    size_t next = 0;
    for (const StartBlock& block : segment.blocks) {
      if (block.allocation == kNoAllocation) continue;
      blocks_[block.allocation] = owned[next];
      owned[next]->tag = tag_of(block.allocation);
      ++next;
    }
  }
  const Stats& stats = allocator_->stats();
  peak_allocated_.bytes = stats.allocated_bytes.all().current;
  peak_reserved_.bytes = stats.reserved_bytes.all().current;
  peak_requested_.bytes = stats.requested_bytes.all().current;
}

void ExactReplay::append_to(const ExactReplay& before) {
  counts_.alloc_total += before.counts_.alloc_total;
  counts_.alloc_exact += before.counts_.alloc_exact;
  counts_.driver_total += before.counts_.driver_total;
  counts_.driver_exact += before.counts_.driver_exact;
  if (before.first_difference_) first_difference_ = before.first_difference_;
  differences_ += before.differences_;
  const auto prepend = [](auto& here, const auto& there) { here.insert(here.begin(), there.begin(), there.end()); };
  prepend(explicit_releases_, before.explicit_releases_);
  prepend(oom_pools_, before.oom_pools_);
  prepend(guessed_polls_, before.guessed_polls_);
  own_release_bursts_ += before.own_release_bursts_;
  unexplained_releases_ += before.unexplained_releases_;
  from_the_beginning_ = before.from_the_beginning_;
  const auto take_higher = [](Peak& here, const Peak& there) {
    if (there.bytes >= here.bytes) here = there;
  };
  take_higher(peak_allocated_, before.peak_allocated_);
  take_higher(peak_reserved_, before.peak_reserved_);
  take_higher(peak_requested_, before.peak_requested_);
}

[[gnu::always_inline]] inline void ExactReplay::handle_alloc(uint32_t event) {
  counts_.alloc_total += 1;
  const uint32_t id = timeline_.allocation_of[event];
  const uint64_t address = trace_.addr[event];
  const int64_t requested = trace_.size[event];
  const StreamId stream = trace_.stream(event);
  const PoolId pool = timeline_.pools[timeline_.allocations.pool_index(id)];
  const bool has_prefix = prefix_begin_ != kNoEvent;
  if (has_prefix) {
    resolve_prefix_before_call(event, true);
    note_own_segment_allocator(event, pool);
  } else {
    device_->open(event, event);
  }
  Block* block = nullptr;
  if (next_forced_.is(trace_.forced, event) || next_restored_.is(trace_.restored, event)) {
    block = place(event, stream, pool);
  } else {
    block = allocator_->malloc_in_pool(requested, stream, pool);
  }
  const uint32_t segment_event = device_->last_segment_event();
  last_placed_ = block == nullptr ? 0 : block->address;
  if (has_prefix) finish_prefix(event);
  last_placed_ = 0;
  last_alloc_ = event;
  if (block == nullptr || block->address != address) {
    differ_at_alloc(event, block, segment_event);
    block = blocks_[id];
  } else {
    counts_.alloc_exact += 1;
    blocks_[id] = block;
    block->tag = tag_of(id);
  }
  if (block != nullptr) timeline_.allocations.set_size(id, block->size);
  const Stats& stats = allocator_->stats();
  if (stats.allocated_bytes.all().current > peak_allocated_.bytes) {
    peak_allocated_ = Peak{stats.allocated_bytes.all().current, event};
  }
  if (stats.requested_bytes.all().current > peak_requested_.bytes) {
    peak_requested_ = Peak{stats.requested_bytes.all().current, event};
  }
}

// Where the recording says, since it was told where: at a forced address, or as a checkpoint had it.
Block* ExactReplay::place(uint32_t event, StreamId stream, PoolId pool) {
  const uint64_t address = trace_.addr[event];
  const int64_t requested = trace_.size[event];
  const bool is_forced = std::binary_search(trace_.forced.begin(), trace_.forced.end(), event);
  Block* before = event > 0 && last_alloc_ == event - 1 ? blocks_[timeline_.allocation_of[event - 1]] : nullptr;
  const bool follows = before != nullptr && before->address + static_cast<uint64_t>(before->size) == address;
  if (is_forced || !follows) {
    placements_ += 1;
    if (placements_ > kMostPlacements) return allocator_->malloc_in_pool(requested, stream, pool);
  }
  return is_forced ? allocator_->malloc_at(address, requested, stream, pool)
                   : allocator_->restore(address, requested, stream, pool, before);
}

// Where expandable segments are on, only a pool with its own segment allocator obtains an ordinary segment.
void ExactReplay::note_own_segment_allocator(uint32_t event, PoolId pool) {
  if (!config_.settings.expandable_segments || pool.is_default()) return;
  const auto begin = trace_.action.begin();
  if (std::find(begin + prefix_begin_, begin + event, Action::segment_alloc) == begin + event) return;
  allocator_->private_pool(pool).custom_allocator = true;
}

void ExactReplay::differ_at_alloc(uint32_t event, Block* block, uint32_t segment_event) {
  const uint32_t id = timeline_.allocation_of[event];
  const Allocation& allocation = timeline_.allocations[id];
  // A new segment's first block lies at its start. If the block is freed where it was allocated, its address is right
  // and the segment's is wrong.
  uint32_t blamed = event;
  const bool freed_there =
      allocation.free_requested == kNoEvent || trace_.addr[allocation.free_requested] == allocation.address;
  if (block != nullptr && segment_event != kNoEvent && trace_.action[segment_event] == Action::segment_alloc &&
      block->address == trace_.addr[segment_event] && freed_there) {
    blamed = segment_event;
  }
  const bool was_placed = std::binary_search(trace_.forced.begin(), trace_.forced.end(), event) ||
                          std::binary_search(trace_.restored.begin(), trace_.restored.end(), event);
  differ(blamed, block == nullptr ? "refuses" : "places",
         {{"bytes", std::to_string(allocation.requested)},
          {"at", format_address(allocation.address)},
          {"engine_at", format_address(block == nullptr ? 0 : block->address)}},
         block == nullptr && !was_placed ? LimitHint::too_low : LimitHint::none, block == nullptr ? 0 : block->address);
  force_placement(event, id, block);
}

[[gnu::always_inline]] inline void ExactReplay::handle_free(uint32_t event) {
  if (prefix_begin_ != kNoEvent) {
    resolve_prefix_before_call(event, false);
    finish_prefix(event);
  }
  const uint32_t id = timeline_.allocation_of[event];
  if (id == kNoAllocation || blocks_[id] == nullptr) {
    differ_at_stray_free(event);
    return;
  }
  Block* block = blocks_[id];
  if (!block->allocated || block->tag != tag_of(id)) {
    differ_at_second_free(event);
    return;
  }
  check_free_address(event, *block);
  if (is_freed_at_once(timeline_, event)) {
    check_free_address(event + 1, *block);
    allocator_->free(block);
    blocks_[id] = nullptr;
    position_ = event + 2;
  } else {
    allocator_->free_held(block);
  }
}

void ExactReplay::touch_tables(uint32_t end) {
  const uint32_t first = timeline_.allocations.first_from(position_);
  const uint32_t last = std::max(first, timeline_.allocations.first_from(end));
  blocks_.touch(first, last);
  timeline_.allocations.touch_sizes(first, last);
}

void ExactReplay::run(uint32_t end, bool stop_at_difference) {
  const uint32_t events = static_cast<uint32_t>(trace_.size_events());
  end = std::min(end, events);
  while (position_ < end) {
    if (stop_at_difference && first_difference_) return;
    const uint32_t event = position_++;
    switch (trace_.action[event]) {
      case Action::alloc: handle_alloc(event); break;
      case Action::free_requested: handle_free(event); break;
      case Action::free_completed:
        if (prefix_begin_ == kNoEvent) prefix_begin_ = event;
        prefix_has_completions_ = true;
        break;
      case Action::segment_free:
      case Action::segment_unmap: prefix_has_releases_ = true; [[fallthrough]];
      case Action::segment_alloc:
      case Action::segment_map:
        if (prefix_begin_ == kNoEvent) prefix_begin_ = event;
        counts_.driver_total += 1;
        break;
      case Action::oom: handle_oom(event); break;
      case Action::snapshot:
      case Action::annotate:
      case Action::unknown: break;
    }
  }
  if (position_ == events && prefix_begin_ != kNoEvent) finish_end();
}

// What stands behind the last call is an empty_cache at the very end. Where the events were cut it may as well belong
// to a call that is cut off, and need not be all of it: nothing to compare with.
void ExactReplay::finish_end() {
  const uint32_t events = static_cast<uint32_t>(trace_.size_events());
  if (!events_were_cut()) {
    resolve_prefix_before_call(events, false);
    finish_prefix(events);
    return;
  }
  complete_prefix(events);
  int64_t reserved = allocator_->reserved_bytes();
  for (uint32_t i = prefix_begin_; i < events; ++i) {
    if (!is_driver_event(trace_.action[i])) continue;
    counts_.driver_total -= 1;
    const bool is_release = trace_.action[i] == Action::segment_free || trace_.action[i] == Action::segment_unmap;
    reserved += is_release ? -trace_.size[i] : trace_.size[i];
    if (reserved > peak_reserved_.bytes) peak_reserved_ = Peak{reserved, i};
  }
  prefix_begin_ = kNoEvent;
}

// Of the devices, the last one with events is the one whose events were cut.
bool ExactReplay::events_were_cut() const {
  if (!timeline_.snapshot->events_were_cut()) return false;
  const std::vector<Trace>& traces = timeline_.snapshot->traces;
  const size_t next = static_cast<size_t>(timeline_.device) + 1;
  return std::all_of(traces.begin() + static_cast<std::ptrdiff_t>(std::min(next, traces.size())), traces.end(),
                     [](const Trace& trace) { return trace.size_events() == 0; });
}

// Only a damaged recording frees twice.
void ExactReplay::differ_at_second_free(uint32_t event) {
  differ(event, "second-free", {{"at", format_address(trace_.addr[event])}});
}

// Of a recording that was cut, the start lacks what nothing shows; elsewhere a free needs a block.
void ExactReplay::differ_at_stray_free(uint32_t event) {
  const uint32_t id = timeline_.allocation_of[event];
  const bool unknown_start =
      id != kNoAllocation && timeline_.allocations.events_of(id).begin == kNoEvent && !timeline_.snapshot->complete;
  if (unknown_start) return;
  differ(event, "stray-free", {{"at", format_address(trace_.addr[event])}});
}

// The pairing tied this free to a block although the addresses differ: one of the two events is wrong. If it was the
// alloc, that has been said already.
void ExactReplay::differ_at_free(uint32_t event, const Block& block) {
  differ(event, "free-elsewhere",
         {{"at", format_address(trace_.addr[event])}, {"engine_at", format_address(block.address)}});
}

void ExactReplay::handle_oom(uint32_t event) {
  const PoolId pool = pool_of_request(event);
  oom_pools_.push_back(pool);
  if (prefix_begin_ != kNoEvent) {
    resolve_prefix_before_call(event, true);
  } else {
    device_->open(event, event);
  }
  // The entry has the rounded size, which rounds to itself.
  Block* block = allocator_->malloc_in_pool(trace_.size[event], trace_.stream(event), pool);
  finish_prefix(event);
  counts_.driver_total += 1;
  if (block != nullptr) {
    differ(event, "finds-room", {{"bytes", std::to_string(trace_.size[event])}}, LimitHint::too_high);
    allocator_->free(block);
    return;
  }
  if (config_.limit_is_told && nobody_refuses(event)) {
    differ(event, "finds-room", {{"bytes", std::to_string(trace_.size[event])}}, LimitHint::too_high);
    return;
  }
  counts_.driver_exact += 1;
}

// The recording answers for the driver, so that an oom entry always ends in a refusal. Was there room in truth, under
// the limit and on the card?
bool ExactReplay::nobody_refuses(uint32_t event) const {
  const int64_t wanted = allocation_size(std::max<int64_t>(trace_.size[event], 1), config_.settings);
  const bool limit_allows = !config_.limit_bytes || allocator_->reserved_bytes() + wanted <= *config_.limit_bytes;
  return limit_allows && trace_.addr[event] >= static_cast<uint64_t>(wanted);
}

// Note [Whose release is it]
// A burst of segment_free or segment_unmap in front of a request may be the request's own doing (garbage collection,
// release_available, the last resort before an OOM) or a call of empty_cache that came before. It is the request's own
// only if its search fails as things stand, and either garbage collection is due, or the limit refuses the segment that
// it needs, or the entry is an oom, or the card itself was full. Everything else, and all in front of a free, was
// called for.
//
// Under other settings explicit releases stay where the program called them, and own ones are dropped: so the
// difference matters for every what-if, not only for the count of retries.
void ExactReplay::resolve_prefix_before_call(uint32_t event, bool is_request) {
  // A refused request's full release waits for what is pending also where it then finds no segment to free.
  const bool waits = is_request && prefix_has_completions_ && trace_.action[event] == Action::oom;
  const bool own = (prefix_has_releases_ || waits) && is_request && releases_are_own(event);
  if (own) {
    if (prefix_has_releases_) own_release_bursts_ += 1;
    uint32_t first_driver_event = prefix_begin_;
    while (first_driver_event < event && !is_driver_event(trace_.action[first_driver_event])) ++first_driver_event;
    if (completions_were_polled(event, first_driver_event)) complete_prefix(first_driver_event);
    hold_in_recorded_order(event);
    device_->open(prefix_begin_, event);
    return;
  }
  complete_prefix(position_);
  device_->open(prefix_begin_, event);
  if (prefix_has_releases_) release_explicitly(event);
}

// A malloc polls events first; a full release waits for all of them later. Which of the two completed the blocks in
// front of the first release? If others stay pending, there was no wait. If one of them would have served the request,
// there was no poll, or there would have been no release. Else collection or release_available may have seen them as
// free or not: a guess, which verify reverses if it leads to a difference.
bool ExactReplay::completions_were_polled(uint32_t event, uint32_t first_driver_event) {
  if (!prefix_has_completions_) return false;
  size_t completed = 0;
  bool one_serves = false;
  const int64_t size = round_size(std::max<int64_t>(trace_.size[event], 1), config_.settings, config_.rules);
  for (uint32_t i = prefix_begin_; i < event; ++i) {
    if (trace_.action[i] != Action::free_completed) continue;
    completed += 1;
    const uint32_t id = timeline_.allocation_of[i];
    if (id == kNoAllocation || blocks_[id] == nullptr || i >= first_driver_event) continue;
    const Block& block = *blocks_[id];
    one_serves = one_serves ||
                 (block.segment->stream == trace_.stream(event) && block.segment->pool->is_small == is_small(size) &&
                  block.size >= size && allocator_->accepts(size, block.size));
  }
  if (allocator_->held_count() > completed) return true;
  if (one_serves) return false;
  const bool guess = allocator_->gc_would_run() || config_.settings.max_split_size_bytes != kUnlimitedBytes;
  guessed_polls_.push_back(event);
  const std::vector<uint32_t>& reversed = config_.reversed_polls;
  return guess != (std::find(reversed.begin(), reversed.end(), event) != reversed.end());
}

// What is held now, the request's own full release completes as the recording tells it: neighbours merge in that order.
void ExactReplay::hold_in_recorded_order(uint32_t event) {
  for (uint32_t i = std::max(prefix_begin_, completed_until_); i < event; ++i) {
    const uint32_t id = timeline_.allocation_of[i];
    if (trace_.action[i] != Action::free_completed || id == kNoAllocation || blocks_[id] == nullptr) continue;
    if (blocks_[id]->tag == tag_of(id)) allocator_->hold_last(blocks_[id]);
  }
}

bool ExactReplay::releases_are_own(uint32_t event) const {
  const bool is_oom = trace_.action[event] == Action::oom;
  const StreamId stream = trace_.stream(event);
  const PoolId pool = pool_of_request(event);
  const int64_t requested = std::max<int64_t>(trace_.size[event], 1);
  if (allocator_->peek(requested, stream, pool) != nullptr) return false;
  if (is_oom) return true;
  for (uint32_t i = prefix_begin_; i < event; ++i) {
    if (is_driver_event(trace_.action[i])) {
      if (stack_calls_empty_cache(trace_.stack[i])) return false;
      break;
    }
  }
  if (allocator_->gc_would_run()) return true;
  const int64_t size = round_size(requested, config_.settings, config_.rules);
  const int64_t alloc_size = allocation_size(size, config_.settings);
  if (config_.limit_bytes && allocator_->reserved_bytes() + alloc_size > *config_.limit_bytes) return true;
  return config_.driver_refuses;
}

bool ExactReplay::stack_calls_empty_cache(StackId stack) const {
  if (empty_cache_name_ == StringId::none) return false;
  const StackTable& stacks = timeline_.snapshot->stacks;
  const uint32_t index = static_cast<uint32_t>(stack);
  for (uint32_t i = stacks.starts[index]; i < stacks.starts[index + 1]; ++i) {
    if (stacks.frames[stacks.frame_ids[i]].name == empty_cache_name_) return true;
  }
  return false;
}

// The program called empty_cache, or a pool's destructor did: the segments that go say which.
void ExactReplay::release_explicitly(uint32_t event) {
  ExplicitRelease release{.event = event, .everything = true, .pools = {}};
  bool explained = false;
  bool default_pool = timeline_.pools.size() == 1;
  std::vector<uint64_t> released;
  for (uint32_t i = prefix_begin_; i < event; ++i) {
    if (trace_.action[i] != Action::segment_free && trace_.action[i] != Action::segment_unmap) continue;
    explained = explained || stack_calls_empty_cache(trace_.stack[i]);
    if (default_pool) break;
    released.push_back(trace_.addr[i]);
  }
  std::sort(released.begin(), released.end());
  for (const Segment* segment : segments_of(released, allocator_->segments())) {
    if (segment->pool->owner == nullptr) {
      default_pool = true;
    } else {
      release.pools.push_back(timeline_.pool_index(segment->pool->owner->id));
    }
  }
  std::sort(release.pools.begin(), release.pools.end());
  release.pools.erase(std::unique(release.pools.begin(), release.pools.end()), release.pools.end());
  release.everything = default_pool;
  in_unexplained_release_ = !explained;
  for (uint32_t pool : release.pools) allocator_->private_pool(timeline_.pools[pool]).use_count = 0;
  if (release.everything) {
    allocator_->empty_cache();
  } else {
    for (uint32_t pool : release.pools) allocator_->empty_pool(timeline_.pools[pool]);
  }
  in_unexplained_release_ = false;
  if (!explained) unexplained_releases_ += 1;
  explicit_releases_.push_back(std::move(release));
}

void ExactReplay::complete_prefix(uint32_t until) {
  if (!prefix_has_completions_) return;
  until = std::min(until, static_cast<uint32_t>(trace_.size_events()));
  for (uint32_t i = std::max(prefix_begin_, completed_until_); i < until; ++i) {
    if (trace_.action[i] != Action::free_completed) continue;
    const uint32_t id = timeline_.allocation_of[i];
    if (id == kNoAllocation || blocks_[id] == nullptr) {
      differ_at_stray_free(i);
      continue;
    }
    Block* block = blocks_[id];
    blocks_[id] = nullptr;
    // A full release of the engine's own may have completed it; then the object is somebody else's by now.
    if (block->tag != tag_of(id) || (!block->held && !block->allocated)) continue;
    check_free_address(i, *block);
    if (block->allocated) {
      differ(i, "unrequested-free", {{"at", format_address(trace_.addr[i])}});
      allocator_->free(block);
    } else {
      allocator_->complete(block);
    }
  }
  completed_until_ = std::max(completed_until_, until);
}

// After the call: what the engine left unasked is a difference, what it left held completes now.
void ExactReplay::finish_prefix(uint32_t event) {
  if (prefix_begin_ == kNoEvent) return;
  if (device_->unused() < event) {
    const uint32_t unused = device_->unused();
    const bool is_release =
        trace_.action[unused] == Action::segment_free || trace_.action[unused] == Action::segment_unmap;
    differ(unused, is_release ? "only-recording-releases" : "only-recording-obtains",
           {{"bytes", std::to_string(trace_.size[unused])}, {"at", format_address(trace_.addr[unused])}},
           is_release ? LimitHint::too_high : LimitHint::too_low, last_placed_);
  }
  complete_prefix(position_);
  if (allocator_->reserved_bytes() > peak_reserved_.bytes) peak_reserved_ = Peak{allocator_->reserved_bytes(), event};
  prefix_begin_ = kNoEvent;
  prefix_has_releases_ = false;
  prefix_has_completions_ = false;
}

// After a difference the replay goes on from the recorded placement, if that is free: one altered event is one
// difference, and not all that follow.
void ExactReplay::force_placement(uint32_t event, uint32_t id, Block* placed) {
  const Allocation& allocation = timeline_.allocations[id];
  const PoolId pool = timeline_.pools[allocation.pool_index];
  blocks_[id] = nullptr;
  // An address that nobody frees again was altered; then the engine's own placement is the true one.
  const bool plausible = allocation.free_requested != kNoEvent || allocation.free_completed != kNoEvent ||
                         trace_.size_events() == event + 1;
  if (placed != nullptr && plausible && differences_ <= kMostPlacements) {
    allocator_->free(placed);
    blocks_[id] = allocator_->malloc_at(allocation.address, allocation.requested, trace_.stream(event), pool);
    if (blocks_[id] == nullptr) {
      blocks_[id] = allocator_->malloc_in_pool(allocation.requested, trace_.stream(event), pool);
    }
  } else {
    blocks_[id] = placed;
  }
  if (blocks_[id] != nullptr) blocks_[id]->tag = tag_of(id);
}

void ExactReplay::differ(uint32_t event, std::string_view what, Values values, LimitHint hint,
                         uint64_t engine_address) {
  differences_ += 1;
  // A release that nobody called for and that looks like empty_cache to us was the allocator's own, under a lower
  // limit.
  if (in_unexplained_release_) hint = LimitHint::too_high;
  if (!first_difference_)
    first_difference_ = Difference{.event = event,
                                   .what = "difference." + std::string(what),
                                   .values = std::move(values),
                                   .hint = hint,
                                   .engine_address = engine_address};
}

void ExactReplay::blame(uint32_t event, uint64_t address) {
  if (trace_.action[event] == Action::alloc) counts_.alloc_exact -= 1;
  if (is_driver_event(trace_.action[event])) counts_.driver_exact -= 1;
  differ(event, "altered", {{"at", format_address(address)}, {"engine_at", format_address(trace_.addr[event])}},
         LimitHint::none, trace_.addr[event]);
}

// An oom entry names no pool. If the allocation before it was in a private pool and nothing was released for it, the
// request was that pool's: an OOM inside a pool scope does not release everything. One outside does, so where something
// could have been released and was not, the request was some private pool's.
PoolId ExactReplay::pool_of_request(uint32_t event) const {
  if (!trace_.pool.empty()) return trace_.pool[event];
  if (trace_.action[event] != Action::oom) {
    const uint32_t id = timeline_.allocation_of[event];
    return id == kNoAllocation ? PoolId{} : timeline_.pools[timeline_.allocations.pool_index(id)];
  }
  PoolId likely;
  if (last_alloc_ != kNoEvent && !prefix_has_releases_)
    likely = timeline_.pools[timeline_.allocations.pool_index(timeline_.allocation_of[last_alloc_])];
  // A pool in which the request would have been served is not the one.
  const int64_t requested = std::max<int64_t>(trace_.size[event], 1);
  const bool nothing_released = !prefix_has_releases_ && allocator_->has_releasable_memory();
  const auto refuses = [&](PoolId pool) {
    if (pool.is_default() && nothing_released) return false;
    return allocator_->peek(requested, trace_.stream(event), pool) == nullptr;
  };
  if (refuses(likely)) return likely;
  const auto other = std::find_if(timeline_.pools.begin(), timeline_.pools.end(), refuses);
  return other == timeline_.pools.end() ? likely : *other;
}

}  // namespace oomscope
