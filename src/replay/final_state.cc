#include "replay/final_state.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace oomscope {
namespace {

// A segment as a snapshot shows it: an ordinary one, or a maximal mapped run of an expandable one.
struct Shown {
  const Segment* segment;
  const Block* first;
  int64_t size;
};

std::vector<Shown> shown_segments(const CachingAllocator& allocator) {
  std::vector<Shown> shown;
  for (const Segment* segment : allocator.segments()) {
    for (const Block* block = segment->first; block != nullptr;) {
      if (!block->mapped) {
        block = block->next;
        continue;
      }
      Shown run{.segment = segment, .first = block, .size = 0};
      for (; block != nullptr && block->mapped; block = block->next) run.size += block->size;
      shown.push_back(run);
    }
  }
  std::sort(shown.begin(), shown.end(),
            [](const Shown& a, const Shown& b) { return a.first->address < b.first->address; });
  return shown;
}

BlockState state_of(const Block& block) {
  if (block.allocated) return BlockState::active_allocated;
  return block.is_idle() ? BlockState::inactive : BlockState::active_pending_free;
}

std::string compare_blocks(const Snapshot& snapshot, const SnapshotSegment& want, const Shown& have) {
  const Block* block = have.first;
  for (uint32_t i = 0; i < want.block_count; ++i, block = block->next) {
    const SnapshotBlock& expected = snapshot.blocks[want.first_block + i];
    if (block == nullptr || !block->mapped) return fmt::format("block {:#x} is missing", expected.address);
    if (block->address != expected.address || block->size != expected.size) {
      return fmt::format("block [{:#x}, {} bytes) should be [{:#x}, {} bytes)", block->address, block->size,
                         expected.address, expected.size);
    }
    if (state_of(*block) != expected.state) return fmt::format("block {:#x} is in another state", block->address);
    const bool live = expected.state != BlockState::inactive;
    if (live && !snapshot.features.block_history && block->requested_size != expected.requested_size) {
      return fmt::format("block {:#x} has {} bytes requested instead of {}", block->address, block->requested_size,
                         expected.requested_size);
    }
  }
  return {};
}

}  // namespace

std::string compare_final_state(const Snapshot& snapshot, int32_t device, const CachingAllocator& allocator) {
  const std::vector<Shown> shown = shown_segments(allocator);
  std::vector<const SnapshotSegment*> expected;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) expected.push_back(&segment);
  }
  std::sort(expected.begin(), expected.end(),
            [](const SnapshotSegment* a, const SnapshotSegment* b) { return a->address < b->address; });
  for (size_t i = 0; i < std::max(shown.size(), expected.size()); ++i) {
    if (i >= shown.size()) return fmt::format("segment {:#x} is missing", expected[i]->address);
    if (i >= expected.size()) return fmt::format("segment {:#x} should be gone", shown[i].first->address);
    const SnapshotSegment& want = *expected[i];
    const Shown& have = shown[i];
    if (have.first->address != want.address || have.size != want.total_size) {
      return fmt::format("segment [{:#x}, {} bytes) should be [{:#x}, {} bytes)", have.first->address, have.size,
                         want.address, want.total_size);
    }
    const BlockPool& pool = *have.segment->pool;
    const PoolId id = pool.owner == nullptr ? PoolId{} : pool.owner->id;
    if (have.segment->stream != want.stream || pool.is_small == want.is_large || id != want.pool ||
        have.segment->is_expandable != want.is_expandable) {
      return fmt::format("segment {:#x} has another stream, pool or kind", want.address);
    }
    if (std::string text = compare_blocks(snapshot, want, have); !text.empty()) return text;
  }
  return {};
}

}  // namespace oomscope
