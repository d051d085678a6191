#include "analysis/free_space.h"

#include <algorithm>

namespace oomscope {

FreeSpace free_space_for(const CachingAllocator& allocator, int64_t size_bytes, StreamId stream, PoolId pool) {
  FreeSpace space;
  const int64_t max_split = allocator.settings().max_split_size_bytes;
  const bool small = is_small(size_bytes);
  for (const Segment* segment : allocator.segments()) {
    const BlockPool& owner = *segment->pool;
    const PoolId id = owner.owner == nullptr ? PoolId{} : owner.owner->id;
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      if (!block->mapped || !block->is_idle()) continue;
      if (id != pool) {
        (id.is_default() ? space.default_pool_bytes : space.private_pool_bytes) += block->size;
      } else if (segment->stream != stream) {
        space.other_stream_bytes += block->size;
      } else if (owner.is_small != small) {
        space.other_class_bytes += block->size;
      } else if (size_bytes < max_split && block->size >= max_split) {
        space.oversize_bytes += block->size;
      } else {
        space.usable_bytes += block->size;
        space.usable_pieces += 1;
        space.largest_usable_bytes = std::max(space.largest_usable_bytes, block->size);
      }
    }
  }
  return space;
}

PinnedSpace pinned_space(const CachingAllocator& allocator) {
  constexpr int64_t kScarce = 8;  // live under 1/8 of a segment
  PinnedSpace pinned;
  for (const Segment* segment : allocator.segments()) {
    if (segment->is_expandable) continue;  // whole pages can be given back
    int64_t live = 0;
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      if (!block->is_idle()) live += block->size;
    }
    const int64_t free = segment->size_bytes - live;
    if (live == 0 || free == 0) continue;
    const bool small = segment->pool->is_small;
    if (!small && live * kScarce > segment->size_bytes) continue;
    (small ? pinned.small_segments : pinned.large_segments) += 1;
    (small ? pinned.small_free_bytes : pinned.large_free_bytes) += free;
    (small ? pinned.small_live_bytes : pinned.large_live_bytes) += live;
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      if (!block->is_idle()) pinned.tags.push_back(block->tag);
    }
  }
  return pinned;
}

}  // namespace oomscope
