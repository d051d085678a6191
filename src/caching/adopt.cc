// Putting an allocator into a given state, and checking that a state is sound.
#include <fmt/format.h>

#include "caching/allocator.h"

namespace oomscope {

std::vector<Block*> CachingAllocator::adopt_segment(uint64_t address, int64_t size_bytes, StreamId stream,
                                                    PoolId pool_id, bool small, bool expandable,
                                                    std::span<const AdoptedBlock> blocks) {
  PrivatePool* owner = pool_id.is_default() ? nullptr : &private_pool(pool_id);
  BlockPool& pool = owner == nullptr ? (small ? small_ : large_) : (small ? owner->small : owner->large);
  Segment* segment = new_segment(address, size_bytes, stream, &pool, expandable);
  std::vector<Block*> owned;
  Block* previous = nullptr;
  for (const AdoptedBlock& adopted : blocks) {
    Block* block = new_block(segment, address, adopted.size);
    address += static_cast<uint64_t>(adopted.size);
    block->requested_size = adopted.requested_size;
    block->mapped = adopted.mapped;
    block->prev = previous;
    (previous == nullptr ? segment->first : previous->next) = block;
    previous = block;
    if (adopted.mapped) {
      total_reserved_ += adopted.size;
      stats_.reserved_bytes.increase(small, adopted.size);
    }
    if (adopted.allocated || adopted.pending) {
      stats_.active.increase(small, 1);
      stats_.active_bytes.increase(small, adopted.size);
      stats_.requested_bytes.increase(small, adopted.requested_size);
      stats_.allocation.increase(small, 1);
      stats_.allocated_bytes.increase(small, adopted.size);
      if (adopted.size >= settings_.max_split_size_bytes) stats_.oversize_allocations.increase(1);
      block->allocated = true;
      if (adopted.pending) free_held(block);
      owned.push_back(block);
    } else if (adopted.mapped) {
      insert_free(*block);
    } else {
      segment->blocks->unmapped.insert(*block);
    }
  }
  for (Block* block = segment->first; block != nullptr && !expandable; block = block->next) {
    if (!block->is_idle() || !block->is_split()) continue;
    stats_.inactive_split.increase(small, 1);
    stats_.inactive_split_bytes.increase(small, block->size);
  }
  if (!expandable) {
    stats_.segment.increase(small, 1);
    if (size_bytes >= settings_.max_split_size_bytes) stats_.oversize_segments.increase(1);
  }
  if (owner != nullptr) owner->device_allocations += 1;
  return owned;
}

std::string CachingAllocator::check_invariants() const {
  int64_t reserved = 0;
  int64_t allocated = 0;
  int64_t active = 0;
  int64_t requested = 0;
  int64_t inactive_split = 0;
  for (const Segment* segment : segments_) {
    uint64_t address = segment->address;
    const Block* previous = nullptr;
    for (const Block* block = segment->first; block != nullptr; previous = block, block = block->next) {
      if (block->address != address) return fmt::format("block {:#x} does not follow its neighbour", block->address);
      if (block->prev != previous) return fmt::format("block {:#x} has a wrong prev", block->address);
      if (block->segment != segment) return fmt::format("block {:#x} names another segment", block->address);
      if (block->size <= 0) return fmt::format("block {:#x} has size {}", block->address, block->size);
      if (!block->mapped && !segment->is_expandable) return fmt::format("block {:#x} is unmapped", block->address);
      const bool active_block = block->allocated || !block->is_idle();
      if (previous != nullptr && block->is_idle() && previous->is_idle() && block->mapped == previous->mapped) {
        return fmt::format("free blocks {:#x} and {:#x} were not merged", previous->address, block->address);
      }
      if (block->mapped) reserved += block->size;
      if (block->allocated) allocated += block->size;
      if (active_block) active += block->size;
      if (active_block) requested += block->requested_size;
      if (!active_block && block->is_split() && !segment->is_expandable) inactive_split += block->size;
      if (!active_block && block->mapped) {
        const FreeSet& free = segment->blocks->free;
        const Block* found = free.lower_bound(block->size);
        while (found != nullptr && found != block && found->size == block->size) found = free.next(*found);
        if (found != block) return fmt::format("free block {:#x} is not in its set", block->address);
      }
      address += static_cast<uint64_t>(block->size);
    }
    if (address != segment->address + static_cast<uint64_t>(segment->size_bytes)) {
      return fmt::format("segment {:#x} has gaps", segment->address);
    }
  }
  auto differs = [](const char* name, int64_t counted, int64_t kept) {
    return counted == kept ? std::string() : fmt::format("{} is {} but the blocks sum to {}", name, kept, counted);
  };
  for (std::string text :
       {differs("reserved", reserved, total_reserved_),
        differs("reserved_bytes", reserved, stats_.reserved_bytes.all().current),
        differs("allocated_bytes", allocated, stats_.allocated_bytes.all().current),
        differs("active_bytes", active, stats_.active_bytes.all().current),
        differs("requested_bytes", requested, stats_.requested_bytes.all().current),
        differs("inactive_split_bytes", inactive_split, stats_.inactive_split_bytes.all().current)}) {
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace oomscope
