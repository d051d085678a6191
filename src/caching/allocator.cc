#include "caching/allocator.h"

#include <algorithm>

namespace oomscope {
namespace {

// The block that holds the address, which lies in the segment.
Block* block_at(const Segment& segment, uint64_t address) {
  Block* block = segment.first;
  while (block->next != nullptr && block->next->address <= address) block = block->next;
  return block;
}

}  // namespace

CachingAllocator::CachingAllocator(const RuleSet& rules, const AllocatorSettings& settings, Device& device)
    : rules_(rules), device_(device) {
  set_settings(settings);
}

CachingAllocator::~CachingAllocator() = default;

void CachingAllocator::set_settings(const AllocatorSettings& settings) {
  settings_ = settings;
  has_divisions_ = std::any_of(settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end(),
                               [](int64_t divisions) { return divisions > 0; });
}

// --- requests --------------------------------------------------------------------------------------------------------

int64_t CachingAllocator::round_by_divisions(int64_t requested) const {
  return round_size(requested, settings_, rules_);
}

CachingAllocator::Request CachingAllocator::make_request(int64_t requested, StreamId stream, PrivatePool* owner,
                                                         bool suspended) {
  const int64_t size = has_divisions_ ? round_by_divisions(requested) : round_to_block(requested);
  BlockPool* pool =
      owner == nullptr ? (is_small(size) ? &small_ : &large_) : (is_small(size) ? &owner->small : &owner->large);
  const bool pool_allows =
      owner == nullptr || (owner->custom_allocator ? rules_.private_expandable == PrivateExpandable::refuse_custom
                                                   : rules_.private_expandable != PrivateExpandable::no);
  return Request{.requested = requested,
                 .size = size,
                 .stream = stream,
                 .pool = pool,
                 .blocks = &pool->of(stream),
                 .expandable = settings_.expandable_segments && pool_allows,
                 .suspended = suspended};
}

Block* CachingAllocator::malloc(int64_t requested, StreamId stream) {
  if (requested <= 0 || requested >= kHugeRequest) {
    refusal_ = requested <= 0 ? Refusal::zero : Refusal::too_large;
    return nullptr;
  }
  const Scope* scope = scope_for(stream);
  PrivatePool* owner = scope == nullptr ? nullptr : &private_pool(scope->pool);
  const bool suspended = suspended_for(stream);
  if (!suspended) poll_events();
  Request request = make_request(requested, stream, owner, suspended);
  return allocate(request);
}

[[gnu::flatten]] Block* CachingAllocator::malloc_in_pool(int64_t requested, StreamId stream, PoolId pool) {
  if (requested <= 0 || requested >= kHugeRequest) {
    refusal_ = requested <= 0 ? Refusal::zero : Refusal::too_large;
    return nullptr;
  }
  PrivatePool* owner = pool.is_default() ? nullptr : &private_pool(pool);
  if (owner != nullptr && owner->use_count == 0) owner->use_count = 1;  // its scope is open again
  // A pool {k, 0} belongs to a graph capture; from 2.13 on only captures suspend.
  const bool suspended = owner != nullptr && (!rules_.only_capture_suspends || pool.first != 0);
  if (!suspended) poll_events();
  Request request = make_request(requested, stream, owner, suspended);
  return allocate(request);
}

// Ranges whose length nothing tells overlap: the one that begins nearest holds an address.
Segment* CachingAllocator::segment_at(uint64_t address, StreamId stream, const PrivatePool* owner) const {
  Segment* nearest = nullptr;
  for (Segment* segment : segments_) {
    const bool holds = segment->pool->owner == owner && segment->stream == stream &&
                       address - segment->address < static_cast<uint64_t>(segment->size_bytes);
    if (holds && (nearest == nullptr || segment->address > nearest->address)) nearest = segment;
  }
  return nearest;
}

// A prefix is handed out and freed again, as PyTorch does it.
Block* CachingAllocator::malloc_at(uint64_t address, int64_t requested, StreamId stream, PoolId pool) {
  PrivatePool* owner = pool.is_default() ? nullptr : &private_pool(pool);
  Request request = make_request(std::max<int64_t>(requested, 1), stream, owner, true);
  Segment* segment = segment_at(address, stream, owner);
  if (segment == nullptr || segment->pool != request.pool) return nullptr;
  Block* block = block_at(*segment, address);
  const int64_t before = static_cast<int64_t>(address - block->address);
  if (!block->is_idle() || !block->mapped || block->size < before + request.size || before % kMinBlockSize != 0) {
    return nullptr;
  }
  remove_free(*block);
  if (before == 0) return carve(request, block);
  Request prefix = request;
  prefix.requested = before;
  prefix.size = before;
  Block* front = hand_out(prefix, block, true);
  remove_free(*block);
  Block* result = carve(request, block);
  free(front);
  return result;
}

Block* CachingAllocator::restore(uint64_t address, int64_t size, StreamId stream, PoolId pool, Block* before) {
  if (size <= 0 || size % kMinBlockSize != 0) return nullptr;
  PrivatePool* owner = pool.is_default() ? nullptr : &private_pool(pool);
  // A checkpoint goes through each segment block by block.
  const bool goes_on = before != nullptr && before->address + static_cast<uint64_t>(before->size) == address &&
                       before->next != nullptr && before->segment->pool->owner == owner;
  Segment* segment = goes_on ? before->segment : segment_at(address, stream, owner);
  if (segment == nullptr || segment->stream != stream) return nullptr;
  Block* block = goes_on ? before->next : block_at(*segment, address);
  if (!block->is_idle() || !block->mapped || block->address != address || block->size < size) return nullptr;
  Request request = make_request(size, stream, owner, true);
  request.size = size;
  request.pool = segment->pool;
  request.blocks = &segment->pool->of(stream);
  remove_free(*block);
  return carve(request, block);
}

Block* CachingAllocator::allocate(Request& request) {
  refusal_ = Refusal::none;
  Block* block = find_or_make(request);
  return block != nullptr ? carve(request, block) : refuse(request);
}

Block* CachingAllocator::refuse(const Request& request) {
  if (refusal_ == Refusal::impossible) return nullptr;
  if (request.rejected) {
    refusal_ = Refusal::preempted;
    return nullptr;
  }
  stats_.num_ooms += 1;
  refusal_ = Refusal::oom;
  return nullptr;
}

// The chain of attempts; stops at the first that yields a block.
Block* CachingAllocator::find_or_make(Request& request) {
  Block* block = get_free_block(request);
  return block != nullptr ? block : make_block(request);
}

Block* CachingAllocator::make_block(Request& request) {
  if (gc_active()) garbage_collect();
  if (refusal_ == Refusal::impossible) return nullptr;
  if (Block* block = alloc_block(request, false)) return block;
  if (request.rejected || refusal_ == Refusal::impossible) return nullptr;
  if (rules_.use_on_oom == UseOnOom::early) {
    if (Block* block = try_use_on_oom_pools(request)) return block;
  }
  if (release_available(request)) {
    if (Block* block = alloc_block(request, false)) return block;
  }
  if (!request.suspended && refusal_ != Refusal::impossible) {
    release_cached_blocks(true, std::nullopt);
    if (Block* block = alloc_block(request, true)) return block;
  }
  return rules_.use_on_oom == UseOnOom::last ? try_use_on_oom_pools(request) : nullptr;
}

// --- the free-set search ---------------------------------------------------------------------------------------------

namespace {

bool is_tie(const Block& a, const Block& b) { return a.size == b.size && a.order == b.order && a.segment != b.segment; }

}  // namespace

Block* CachingAllocator::get_free_block(Request& request) {
  if (gc_active()) request.pool->searches += 1;
  Block* candidate = best_fit(request);
  if (candidate == nullptr || !accepts(request.size, candidate->size)) return nullptr;
  const Block* other = request.blocks->free.erase(*candidate);
  if (other != nullptr && !candidate->segment->is_expandable && is_tie(*candidate, *other)) ++address_ties_;
  return candidate;
}

// The smallest block that serves, with PyTorch's adjustment for expandable segments: a free block that touches
// unmapped space counts as large as it could grow, so an enclosed block is preferred over the growing tail.
Block* CachingAllocator::best_fit(const Request& request) const {
  const FreeSet& free = request.blocks->free;
  Block* candidate = free.lower_bound(request.size);
  return candidate == nullptr || !candidate->segment->is_expandable ? candidate : best_fit_from(candidate, request);
}

Block* CachingAllocator::best_fit_from(Block* candidate, const Request& request) const {
  const FreeSet& free = request.blocks->free;
  if (request.expandable) {
    auto expandable_size = [](const Block& block) {
      return block.size + (block.next != nullptr && !block.next->mapped ? block.next->size : 0);
    };
    while (candidate->segment->is_expandable) {
      Block* next = free.next(*candidate);
      if (next == nullptr || expandable_size(*next) >= expandable_size(*candidate)) break;
      candidate = next;
    }
    return candidate;
  }
  // Expandable segments were switched off: only blocks of ordinary segments serve.
  while (candidate != nullptr && candidate->segment->is_expandable) candidate = free.next(*candidate);
  return candidate;
}

bool CachingAllocator::accepts(int64_t size, int64_t block_size) const {
  const int64_t max_split = settings_.max_split_size_bytes;
  if (size < max_split) return block_size < max_split;
  const int64_t rounding = rules_.non_split_rounding_option ? settings_.max_non_split_rounding_bytes : 20 * kSmallSize;
  return block_size - size < rounding;
}

Block* CachingAllocator::peek(int64_t requested, StreamId stream, PoolId pool) {
  Request request = make_request(requested, stream, pool.is_default() ? nullptr : &private_pool(pool), false);
  Block* candidate = best_fit(request);
  return candidate != nullptr && accepts(request.size, candidate->size) ? candidate : nullptr;
}

// --- the driver ------------------------------------------------------------------------------------------------------

Block* CachingAllocator::alloc_block(Request& request, bool is_retry) {
  if (is_retry) stats_.num_alloc_retries += 1;
  Block* block = nullptr;
  if (limit_allows(request)) {
    // "torch.cuda.MemPool doesn't currently support expandable_segments.": see PrivateExpandable::refuse_custom.
    if (request.expandable && request.pool->owner != nullptr && request.pool->owner->custom_allocator) {
      refusal_ = Refusal::impossible;
      return nullptr;
    }
    block = request.expandable ? allocate_expandable(request) : alloc_from_device(request);
  }
  if (block == nullptr) {
    note_refusal(request);
  } else if (request.pool->owner != nullptr) {
    request.pool->owner->device_allocations += 1;
  }
  return block;
}

// The limit is tested with the segment's size, even where expandable segments would map less.
bool CachingAllocator::limit_allows(Request& request) {
  const int64_t total = total_reserved_ + allocation_size(request.size, settings_);
  if (limit_bytes_ && total > *limit_bytes_) return false;
  if (!rules_.preemptive_rejection || !settings_.throw_on_cudamalloc_oom) return true;
  const double cap = settings_.per_process_memory_fraction * static_cast<double>(device_.total_bytes());
  if (static_cast<double>(total) <= cap) return true;
  stats_.num_oom_rejections += 1;
  request.rejected = true;
  return false;
}

void CachingAllocator::note_refusal(const Request& request) {
  const int64_t total = total_reserved_ + allocation_size(request.size, settings_);
  smallest_refused_ = std::min(smallest_refused_.value_or(total), total);
}

Block* CachingAllocator::alloc_from_device(Request& request) {
  const int64_t size = allocation_size(request.size, settings_);
  const uint64_t address = device_.allocate(size, request.stream);
  if (address == 0) return nullptr;
  Segment* segment = new_segment(address, size, request.stream, request.pool, false);
  segment->first = new_block(segment, address, size);
  total_reserved_ += size;
  stats_.segment.increase(request.pool->is_small, 1);
  stats_.reserved_bytes.increase(request.pool->is_small, size);
  if (size >= settings_.max_split_size_bytes) stats_.oversize_segments.increase(1);
  stats_.num_device_alloc += 1;
  return segment->first;
}

// A request of the default pool may take a free block of a pool that opted in, if the driver has nothing left.
Block* CachingAllocator::try_use_on_oom_pools(Request& request) {
  if (request.pool->owner != nullptr) return nullptr;
  for (auto& [id, pool] : private_pools_) {
    if (!pool.use_on_oom) continue;
    Request there = request;
    there.pool = request.pool->is_small ? &pool.small : &pool.large;
    there.blocks = &there.pool->of(request.stream);
    there.expandable = false;
    if (Block* block = get_free_block(there)) {
      request = there;
      return block;
    }
  }
  return nullptr;
}

// --- handing out
// -------------------------------------------------------------------------------------------------------

bool CachingAllocator::should_split(const Request& request, const Block& block) const {
  const int64_t remaining = block.size - request.size;
  if (remaining < kMinBlockSize) return false;
  if (rules_.no_split_pools && request.pool->owner != nullptr && request.pool->owner->no_split) return false;
  const bool expandable = rules_.expandable_per_request ? request.expandable : settings_.expandable_segments;
  if (request.pool->is_small || expandable) return true;
  return request.size < settings_.max_split_size_bytes && remaining > kSmallSize;
}

Block* CachingAllocator::carve(Request& request, Block* block) {
  return hand_out(request, block, should_split(request, *block));
}

// The request gets the front. The object that was free stays the remainder (with its stale requested_size), and a new
// object is made for the front.
Block* CachingAllocator::hand_out(Request& request, Block* block, bool split) {
  const bool was_split = block->is_split();
  const bool small = request.pool->is_small;
  Block* result = block;
  if (split) {
    result = new_block(block->segment, block->address, request.size);
    result->prev = block->prev;
    if (result->prev != nullptr) {
      result->prev->next = result;
    } else {
      result->segment->first = result;
    }
    result->next = block;
    block->prev = result;
    block->address += static_cast<uint64_t>(request.size);
    block->size -= request.size;
    insert_free(*block);
  }
  if (!result->segment->is_expandable) {
    stats_.inactive_split.change(small, int64_t{split} - int64_t{was_split});
    stats_.inactive_split_bytes.change(small, was_split ? -result->size : (split ? block->size : 0));
  }
  result->allocated = true;
  result->requested_size = request.requested;
  stats_.allocation.increase(small, 1);
  stats_.allocated_bytes.increase(small, result->size);
  stats_.active.increase(small, 1);
  stats_.active_bytes.increase(small, result->size);
  stats_.requested_bytes.increase(small, request.requested);
  if (result->size >= settings_.max_split_size_bytes) stats_.oversize_allocations.increase(1);
  return result;
}

// --- taking back
// -------------------------------------------------------------------------------------------------------

void CachingAllocator::finish_free(Block* block) {
  const bool small = block->segment->pool->is_small;
  block->allocated = false;
  stats_.allocation.decrease(small, 1);
  stats_.allocated_bytes.decrease(small, block->size);
  if (block->size >= settings_.max_split_size_bytes) stats_.oversize_allocations.decrease(1);
}

[[gnu::flatten]] void CachingAllocator::free(Block* block, std::optional<StreamId> current) {
  finish_free(block);
  if (block->has_uses) {
    defer_or_queue(block, current.value_or(block->segment->stream));
  } else {
    give_back(block);
  }
}

void CachingAllocator::free_held(Block* block) {
  finish_free(block);
  block->event_count += 1;
  block->held = true;
  block->gc_base = next_held_number_++;
  held_.emplace_hint(held_.end(), block->gc_base, block);
}

void CachingAllocator::hold_last(Block* block) {
  if (!block->held) return;
  held_.erase(block->gc_base);
  block->gc_base = next_held_number_++;
  held_.emplace_hint(held_.end(), block->gc_base, block);
}

void CachingAllocator::complete(Block* block) {
  if (!block->held) return;  // a full release completed it already
  block->held = false;
  held_.erase(block->gc_base);
  block->event_count -= 1;
  if (block->event_count == 0) give_back(block);
}

// The freed object survives and absorbs its free neighbours.
void CachingAllocator::give_back(Block* block) {
  const bool small = block->segment->pool->is_small;
  const bool expandable = block->segment->is_expandable;
  const int64_t original_size = block->size;
  const int64_t requested_size = block->requested_size;
  int64_t split_count = 0;
  int64_t split_bytes = 0;
  auto merge = [&](Block* neighbour) {
    const int64_t absorbed = try_merge(*block, neighbour);
    if (absorbed > 0) split_count -= 1;
    split_bytes -= absorbed;
  };
  merge(block->prev);
  merge(block->next);
  insert_free(*block);
  if (block->is_split()) {
    split_count += 1;
    split_bytes += block->size;
  }
  if (!expandable) {  // the net change counts once: it decides the peak
    stats_.inactive_split.change(small, split_count);
    stats_.inactive_split_bytes.change(small, split_bytes);
  }
  stats_.active.decrease(small, 1);
  stats_.active_bytes.decrease(small, original_size);
  stats_.requested_bytes.decrease(small, requested_size);
}

// Absorbs `neighbour` if it is free in the same way (mapped or unmapped); returns the bytes absorbed.
int64_t CachingAllocator::try_merge(Block& into, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_idle() || neighbour->mapped != into.mapped) return 0;
  if (neighbour == into.prev) {
    into.address = neighbour->address;
    into.prev = neighbour->prev;
    if (into.prev != nullptr) {
      into.prev->next = &into;
    } else {
      into.segment->first = &into;
    }
  } else {
    into.next = neighbour->next;
    if (into.next != nullptr) into.next->prev = &into;
  }
  const int64_t absorbed = neighbour->size;
  into.size += absorbed;
  if (neighbour->mapped) {
    remove_free(*neighbour);
  } else {
    remove_unmapped(*neighbour);
  }
  delete_block(neighbour);
  return absorbed;
}

void CachingAllocator::insert_free(Block& block) {
  block.gc_base = block.segment->pool->searches;  // though collection may be off: settings change
  block.segment->blocks->free.insert(block);
}

void CachingAllocator::remove_free(Block& block) { block.segment->blocks->free.erase(block); }

void CachingAllocator::remove_unmapped(Block& block) {
  UnmappedSet& unmapped = block.segment->blocks->unmapped;
  unmapped.erase(unmapped.iterator_to(block));
}

// --- objects
// -----------------------------------------------------------------------------------------------------------

uint64_t CachingAllocator::block_order(const Segment& segment) {
  const uint64_t number = next_block_number_++;
  switch (rules_.tie_break) {
    case TieBreak::address: return 0;
    case TieBreak::block_counter: return number;
    case TieBreak::custom_block_counter:
      return segment.pool->owner != nullptr && segment.pool->owner->custom_allocator ? number : 0;
    case TieBreak::segment_counter: return segment.counter;
  }
  return 0;
}

Block* CachingAllocator::new_block(Segment* segment, uint64_t address, int64_t size) {
  Block* block = nullptr;
  if (spare_blocks_.empty()) {
    block = block_of_arena();
  } else {
    block = spare_blocks_.back();
    spare_blocks_.pop_back();
  }
  block->address = address;
  block->size = size;
  block->requested_size = 0;
  block->order = block_order(*segment);
  block->prev = nullptr;
  block->next = nullptr;
  block->segment = segment;
  block->event_count = 0;
  block->allocated = false;
  block->mapped = true;
  block->held = false;
  block->tag = 0;
  return block;
}

Block* CachingAllocator::block_of_arena() {
  constexpr size_t kBlocksAtOnce = 256;
  if (arena_used_ == kBlocksAtOnce || arena_.empty()) {
    arena_.push_back(std::make_unique<Block[]>(kBlocksAtOnce));
    arena_used_ = 0;
  }
  return &arena_.back()[arena_used_++];
}

void CachingAllocator::delete_block(Block* block) {
  if (!capture_uses_.empty()) capture_uses_.erase(block);
  spare_blocks_.push_back(block);
}

Segment* CachingAllocator::new_segment(uint64_t address, int64_t size, StreamId stream, BlockPool* pool,
                                       bool expandable) {
  Segment* segment = nullptr;
  if (spare_segments_.empty()) {
    segment = &segment_arena_.emplace_back();
  } else {
    segment = spare_segments_.back();
    spare_segments_.pop_back();
  }
  *segment = Segment{.address = address,
                     .size_bytes = size,
                     .stream = stream,
                     .pool = pool,
                     .blocks = &pool->of(stream),
                     .first = nullptr,
                     .counter = next_segment_number_++,
                     .is_expandable = expandable,
                     .index = segments_.size()};
  segments_.push_back(segment);
  return segment;
}

void CachingAllocator::delete_segment(Segment* segment) {
  segments_[segment->index] = segments_.back();
  segments_[segment->index]->index = segment->index;
  segments_.pop_back();
  spare_segments_.push_back(segment);
}

}  // namespace oomscope
