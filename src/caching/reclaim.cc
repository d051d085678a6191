// Reclaiming: garbage collection, release_available, and release of everything (empty_cache, last resort of an OOM).
#include <algorithm>

#include "caching/allocator.h"

namespace oomscope {

// --- garbage collection
// ------------------------------------------------------------------------------------------------

bool CachingAllocator::gc_would_run() const {
  if (!gc_active()) return false;
  const double threshold = settings_.garbage_collection_threshold * static_cast<double>(*limit_bytes_);
  return total_reserved_ > static_cast<int64_t>(threshold);
}

// Frees whole segments of the default large pool that have been idle for long, until reserved memory is back at the
// threshold. Age is counted in searches of the pool. Each pass frees all blocks at least as old as the mean, to its
// end even when the target is met on the way; passes repeat while they free something and the target is not met.
void CachingAllocator::garbage_collect() {
  if (!gc_would_run()) return;
  const double limit = static_cast<double>(*limit_bytes_);
  const int64_t target = total_reserved_ - static_cast<int64_t>(settings_.garbage_collection_threshold * limit);

  double total_age = 0.0;
  int64_t count = 0;
  auto age_of = [this](const Block& block) { return static_cast<double>(large_.searches - block.gc_base); };
  for (const auto& entry : large_.streams) {
    for (Block* block = entry->free.first(); block != nullptr; block = entry->free.next(*block)) {
      if (block->is_split()) continue;
      total_age += age_of(*block);
      count += 1;
    }
  }
  int64_t reclaimed = 0;
  bool freed = true;
  while (reclaimed < target && freed && count > 0) {
    freed = false;
    const double threshold_age = total_age / static_cast<double>(count);
    for (const auto& entry : large_.streams) {
      for (Block* block = entry->free.first(); block != nullptr;) {
        Block* candidate = block;
        block = entry->free.next(*block);
        if (candidate->is_split() || age_of(*candidate) < threshold_age) continue;
        if (candidate->segment->is_expandable) {
          if (rules_.reclaim_skips_expandable) continue;
          refusal_ = Refusal::impossible;
          return;
        }
        freed = true;
        reclaimed += candidate->size;
        total_age -= age_of(*candidate);
        count -= 1;
        release_block(candidate);
      }
    }
  }
}

// --- release_available
// ---------------------------------------------------------------------------------------------------

// With a max_split_size, oversize blocks are the caches that a large request could not reuse: free one that is large
// enough, else the largest ones until their sum is.
bool CachingAllocator::release_available(Request& request) {
  const int64_t max_split = settings_.max_split_size_bytes;
  if (max_split == kUnlimitedBytes) return false;
  FreeSet& free = request.blocks->free;
  const int64_t wanted = std::max(request.size, max_split);
  Block* found = free.lower_bound(wanted);
  // With a constant max_split_size oversize blocks are whole segments. A forced placement can split one; such a block
  // cannot be given back by itself.
  auto is_whole = [](const Block& block) { return !block.segment->is_expandable && !block.is_split(); };
  if (found != nullptr && is_whole(*found)) {
    release_block(found);
    return true;
  }
  if (found != nullptr && found->segment->is_expandable && !rules_.reclaim_skips_expandable) {
    refusal_ = Refusal::impossible;
    return false;
  }
  int64_t released = 0;
  Block* block = found != nullptr ? free.previous(*found) : free.last();
  while (block != nullptr && released < wanted && block->size >= max_split) {
    Block* candidate = block;
    block = free.previous(*block);
    if (candidate->segment->is_expandable) {
      if (rules_.reclaim_skips_expandable) continue;
      refusal_ = Refusal::impossible;
      return false;
    }
    if (!is_whole(*candidate)) continue;
    released += candidate->size;
    release_block(candidate);
  }
  return released >= wanted;
}

// --- everything
// ------------------------------------------------------------------------------------------------------------

void CachingAllocator::empty_cache(std::optional<StreamId> current) {
  const bool suspended = suspended_for(current);
  refusal_ = suspended && rules_.suspended_release_asserts ? Refusal::impossible : Refusal::none;
  if (refusal_ == Refusal::none) release_cached_blocks(!suspended, std::nullopt);
}

void CachingAllocator::empty_pool(PoolId pool) {
  private_pool(pool).use_on_oom = false;
  release_cached_blocks(false, pool);
}

void CachingAllocator::release_cached_blocks(bool default_pool, std::optional<PoolId> only) {
  if (default_pool || only) synchronize_and_free_events(only);
  if (default_pool) {
    release_blocks(large_);
    release_blocks(small_);
  }
  for (auto& [id, pool] : private_pools_) {
    if (!pool.freeable() || (only && id != *only)) continue;
    release_blocks(pool.small);
    release_blocks(pool.large);
  }
}

// Waits for everything outstanding, or for what is outstanding in one pool, and takes those blocks back.
void CachingAllocator::synchronize_and_free_events(std::optional<PoolId> only) {
  stats_.num_sync_all_streams += 1;
  auto concerned = [&](const Block& block) {
    const PrivatePool* owner = block.segment->pool->owner;
    return !only || (owner != nullptr && owner->id == *only);
  };
  std::vector<Block*> deferred;
  deferred.swap(deferred_);
  for (Block* block : deferred) {
    if (concerned(*block)) {
      queue_deferred(block);
    } else {
      deferred_.push_back(block);
    }
  }
  for (auto& [stream, queue] : events_) {
    std::deque<PendingEvent> rest;
    for (const PendingEvent& pending : queue) {
      if (!concerned(*pending.block)) {
        rest.push_back(pending);
        continue;
      }
      device_.wait_event(pending.event);
      pending.block->event_count -= 1;
      if (pending.block->event_count == 0) give_back(pending.block);
    }
    queue.swap(rest);
  }
  for (auto entry = held_.begin(); entry != held_.end();) {
    Block* block = entry->second;
    if (!concerned(*block)) {
      ++entry;
      continue;
    }
    entry = held_.erase(entry);
    block->held = false;
    block->event_count -= 1;
    if (block->event_count == 0) give_back(block);
  }
}

void CachingAllocator::release_blocks(BlockPool& pool) {
  std::vector<Block*> to_unmap;
  for (const auto& entry : pool.streams) {
    for (Block* block = entry->free.first(); block != nullptr;) {
      Block* candidate = block;
      block = entry->free.next(*block);
      if (candidate->segment->is_expandable) {
        to_unmap.push_back(candidate);  // unmapping makes new free blocks: not while walking
      } else if (!candidate->is_split()) {
        release_block(candidate);
      }
    }
  }
  for (Block* block : to_unmap) unmap_block(block);
}

bool CachingAllocator::has_releasable_memory() const {
  const auto is_releasable = [this](const Block& block) {
    if (!block.segment->is_expandable) return !block.is_split();
    const auto [begin, end] = whole_pages(block);
    return begin < end;
  };
  for (const BlockPool* pool : {&large_, &small_}) {
    for (const auto& entry : pool->streams) {
      for (const Block* block = entry->free.first(); block != nullptr; block = entry->free.next(*block)) {
        if (is_releasable(*block)) return true;
      }
    }
  }
  return false;
}

void CachingAllocator::release_block(Block* block) {
  Segment* segment = block->segment;
  BlockPool& pool = *segment->pool;
  const int64_t size = block->size;
  stats_.num_device_free += 1;
  device_.release(segment->address, size);
  remove_free(*block);
  if (pool.owner != nullptr) pool.owner->device_allocations -= 1;
  total_reserved_ -= size;
  stats_.segment.decrease(pool.is_small, 1);
  stats_.reserved_bytes.decrease(pool.is_small, size);
  if (size >= settings_.max_split_size_bytes) stats_.oversize_segments.decrease(1);
  delete_block(block);
  delete_segment(segment);
}

}  // namespace oomscope
