#include "replay/final_state.h"

#include <algorithm>
#include <vector>

#include "base/bytes_text.h"

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

// `what` is "difference.state.WHAT".
StateDifference differs(std::string_view what, Values values) {
  return {.what = "difference.state." + std::string(what), .values = std::move(values)};
}

Values places(uint64_t have_at, int64_t have_bytes, uint64_t want_at, int64_t want_bytes) {
  return {{"at", format_address(have_at)},
          {"bytes", std::to_string(have_bytes)},
          {"expected_at", format_address(want_at)},
          {"expected_bytes", std::to_string(want_bytes)}};
}

std::optional<StateDifference> compare_blocks(const Snapshot& snapshot, const SnapshotSegment& want,
                                              const Shown& have) {
  const Block* block = have.first;
  for (uint32_t i = 0; i < want.block_count; ++i, block = block->next) {
    const SnapshotBlock& expected = snapshot.blocks[want.first_block + i];
    if (block == nullptr || !block->mapped) return differs("block-missing", {{"at", format_address(expected.address)}});
    if (block->address != expected.address || block->size != expected.size) {
      return differs("block", places(block->address, block->size, expected.address, expected.size));
    }
    if (state_of(*block) != expected.state) return differs("block-state", {{"at", format_address(block->address)}});
    const bool live = expected.state != BlockState::inactive;
    if (live && !snapshot.features.block_history && block->requested_size != expected.requested_size) {
      return differs("block-requested", {{"at", format_address(block->address)},
                                         {"bytes", std::to_string(block->requested_size)},
                                         {"expected_bytes", std::to_string(expected.requested_size)}});
    }
  }
  return {};
}

}  // namespace

std::optional<StateDifference> compare_final_state(const Snapshot& snapshot, int32_t device,
                                                   const CachingAllocator& allocator) {
  const std::vector<Shown> shown = shown_segments(allocator);
  std::vector<const SnapshotSegment*> expected;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) expected.push_back(&segment);
  }
  std::sort(expected.begin(), expected.end(),
            [](const SnapshotSegment* a, const SnapshotSegment* b) { return a->address < b->address; });
  for (size_t i = 0; i < std::max(shown.size(), expected.size()); ++i) {
    if (i >= shown.size()) return differs("segment-missing", {{"at", format_address(expected[i]->address)}});
    if (i >= expected.size()) return differs("segment-kept", {{"at", format_address(shown[i].first->address)}});
    const SnapshotSegment& want = *expected[i];
    const Shown& have = shown[i];
    if (have.first->address != want.address || have.size != want.total_size) {
      return differs("segment", places(have.first->address, have.size, want.address, want.total_size));
    }
    const BlockPool& pool = *have.segment->pool;
    const PoolId id = pool.owner == nullptr ? PoolId{} : pool.owner->id;
    if (have.segment->stream != want.stream || pool.is_small == want.is_large || id != want.pool ||
        have.segment->is_expandable != want.is_expandable) {
      return differs("segment-kind", {{"at", format_address(want.address)}});
    }
    if (std::optional<StateDifference> inside = compare_blocks(snapshot, want, have)) return inside;
  }
  return {};
}

}  // namespace oomscope
