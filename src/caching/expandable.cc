// Expandable segments: one large address range a (pool, stream), pages mapped at need.
//
//   |<---------------------------- range: 9/8 of the card ------------------------------>|
//   | allocated | free |        unmapped        | allocated | free |      unmapped        |
//   |<-- mapped run -->|<-- hole, a block too -->|<-- mapped run -->|
//
// A request that finds no free block grows at the lowest address where free and unmapped blocks in a row are long
// enough, starting at the free block in front of an unmapped one: holes are refilled first. Pages are counted from the
// start of the range. A map step that runs out of memory maps nothing, but earlier steps of the same request stay
// mapped, as free memory.
//
// Source: ExpandableSegment, map_block, unmap_block, find_expandable_block, try_allocate_expandable_block.
#include <algorithm>

#include "caching/allocator.h"

namespace oomscope {

int64_t CachingAllocator::page_bytes(const BlockPool& pool) const {
  return pool.is_small ? kSmallBuffer : settings_.large_segment_size_bytes;
}

Block* CachingAllocator::allocate_expandable(Request& request) {
  Block* candidate = find_expandable_block(request);
  return candidate == nullptr ? nullptr : grow(request, candidate);
}

// The block to start growing at. Reserves a new range if no room is left in the ranges of this pool and stream.
Block* CachingAllocator::find_expandable_block(Request& request) {
  auto allocatable = [](const Block* block) { return block != nullptr && block->is_idle(); };
  for (Block& unmapped : request.blocks->unmapped) {
    Block* start = allocatable(unmapped.prev) ? unmapped.prev : &unmapped;
    int64_t room = 0;
    for (Block* block = start; allocatable(block); block = block->next) {
      room += block->size;
      if (room >= request.size) return start;
    }
  }
  const int64_t page = page_bytes(*request.pool);
  const int64_t size = expandable_range(device_.total_bytes(), page);
  if (size < request.size) return nullptr;
  const uint64_t address = device_.reserve(size, page);
  if (address == 0) return nullptr;
  Segment* segment = new_segment(address, size, request.stream, request.pool, true);
  segment->first = new_block(segment, address, size);
  segment->first->mapped = false;
  request.blocks->unmapped.insert(*segment->first);
  return segment->first;
}

Block* CachingAllocator::grow(Request& request, Block* candidate) {
  if (!candidate->mapped && !map_block(request, candidate, std::min(candidate->size, request.size))) return nullptr;
  while (candidate->size < request.size) {
    // The newly mapped object survives the merge with the candidate in front of it.
    Block* next = candidate->next;
    if (!map_block(request, next, std::min(request.size - candidate->size, next->size))) return nullptr;
    candidate = next;
  }
  remove_free(*candidate);
  return candidate;
}

// Maps the first `size` bytes of an unmapped block, rounded up to pages; the rest stays unmapped as a new block.
bool CachingAllocator::map_block(Request& request, Block* to_map, int64_t size) {
  BlockPool& pool = *request.pool;
  UnmappedSet& unmapped = request.blocks->unmapped;
  const int64_t page = page_bytes(pool);
  const int64_t mapped_size = round_up(size, page);
  if (!device_.map(to_map->address, mapped_size, page)) return false;

  unmapped.erase(unmapped.iterator_to(*to_map));
  to_map->mapped = true;
  if (mapped_size < to_map->size) {
    Block* rest =
        new_block(to_map->segment, to_map->address + static_cast<uint64_t>(mapped_size), to_map->size - mapped_size);
    rest->mapped = false;
    rest->prev = to_map;
    rest->next = to_map->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    to_map->next = rest;
    to_map->size = mapped_size;
    unmapped.insert(*rest);
  }
  try_merge(*to_map, to_map->prev);
  try_merge(*to_map, to_map->next);
  insert_free(*to_map);
  total_reserved_ += mapped_size;
  stats_.reserved_bytes.increase(pool.is_small, mapped_size);
  stats_.num_device_alloc += 1;
  return true;
}

// Those inside a block; empty where begin is not below end.
CachingAllocator::AddressRange CachingAllocator::whole_pages(const Block& block) const {
  const Segment& segment = *block.segment;
  const uint64_t page = static_cast<uint64_t>(page_bytes(*segment.pool));
  const uint64_t offset = block.address - segment.address;
  return {.begin = segment.address + (offset + page - 1) / page * page,
          .end = segment.address + (offset + static_cast<uint64_t>(block.size)) / page * page};
}

// Gives the whole pages inside a free block back to the driver.
void CachingAllocator::unmap_block(Block* block) {
  Segment* segment = block->segment;
  BlockPool& pool = *segment->pool;
  StreamBlocks& blocks = *segment->blocks;
  const auto [begin, end] = whole_pages(*block);
  if (begin >= end) return;
  const int64_t unmapped_size = static_cast<int64_t>(end - begin);

  device_.unmap(begin, unmapped_size);
  blocks.free.erase(*block);
  if (begin > block->address) {
    Block* before = new_block(segment, block->address, static_cast<int64_t>(begin - block->address));
    before->prev = block->prev;
    if (before->prev != nullptr) {
      before->prev->next = before;
    } else {
      segment->first = before;
    }
    before->next = block;
    block->prev = before;
    insert_free(*before);
  }
  const uint64_t block_end = block->address + static_cast<uint64_t>(block->size);
  if (block_end > end) {
    Block* after = new_block(segment, end, static_cast<int64_t>(block_end - end));
    after->next = block->next;
    if (after->next != nullptr) after->next->prev = after;
    after->prev = block;
    block->next = after;
    insert_free(*after);
  }
  block->address = begin;
  block->size = unmapped_size;
  block->mapped = false;
  try_merge(*block, block->prev);
  try_merge(*block, block->next);
  blocks.unmapped.insert(*block);

  total_reserved_ -= unmapped_size;
  stats_.reserved_bytes.decrease(pool.is_small, unmapped_size);
  stats_.num_device_free += 1;
  if (pool.owner != nullptr && rules_.unmap_lowers_pool_count) pool.owner->device_allocations -= 1;
  if (block->is_split()) return;
  device_.release_range(segment->address, segment->size_bytes);
  blocks.unmapped.erase(blocks.unmapped.iterator_to(*block));
  delete_block(block);
  delete_segment(segment);
}

}  // namespace oomscope
