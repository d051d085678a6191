// One event with a wrong address leaves two loose ends: a block that was allocated, never freed and is not there at the
// end, and a free of a block that was never allocated.
//
//   alloc A' (should be A) .............. free_requested A, free_completed A      A' lost, A looks like a ghost
//   alloc A ... free_requested A' ....... free_completed A                        half of a free each
//
// Taken by itself the second end looks like a block that was live before the recording began, and a start state with
// such a ghost makes the replay go wrong long before the event. So loose ends of one size and stream are tied together;
// the replay then meets the difference at the event itself.
#include "model/reconcile.h"

#include <algorithm>
#include <unordered_set>

namespace oomscope {
namespace {

constexpr size_t kMostLooseEnds = 4096;  // more than a damaged byte leaves: then the file is of another kind

bool is_ghost(const Allocation& allocation) { return allocation.begin == kNoEvent; }

class Reconciler {
 public:
  explicit Reconciler(Timeline& timeline) : timeline_(timeline) {}

  void run() {
    if (!timeline_.snapshot->complete) return;  // what is missing at the end would all look lost
    find_live_at_end();
    for (uint32_t id : timeline_.unfinished) {
      const Allocation& allocation = timeline_.allocations[id];
      if (is_ghost(allocation)) {
        ghosts_.push_back(id);
      } else if (is_loose(allocation)) {
        loose_.push_back(id);
      }
    }
    if (loose_.size() > kMostLooseEnds || ghosts_.size() > kMostLooseEnds) return;
    for (uint32_t id : loose_) tie(id);
  }

 private:
  void find_live_at_end() {
    for (const SnapshotSegment& segment : timeline_.snapshot->segments) {
      if (segment.device != timeline_.device) continue;
      for (uint32_t b = 0; b < segment.block_count; ++b) {
        const SnapshotBlock& block = timeline_.snapshot->blocks[segment.first_block + b];
        if (block.state != BlockState::inactive) live_at_end_.insert(block.address);
      }
    }
  }

  // Allocated, but its end is missing, or half of it is.
  [[nodiscard]] bool is_loose(const Allocation& allocation) const {
    const bool requested = allocation.free_requested != kNoEvent;
    const bool completed = allocation.free_completed != kNoEvent;
    if (requested && completed) return false;
    if (completed) return true;
    return live_at_end_.count(allocation.address) == 0;
  }

  void tie(uint32_t id) {
    Allocation& allocation = timeline_.allocations[id];
    const bool lacks_request = allocation.free_requested == kNoEvent;
    const bool lacks_completion = allocation.free_completed == kNoEvent;
    for (uint32_t& ghost_id : ghosts_) {
      if (ghost_id == kNoAllocation) continue;
      Allocation& ghost = timeline_.allocations[ghost_id];
      const bool has_request = ghost.free_requested != kNoEvent;
      const bool has_completion = ghost.free_completed != kNoEvent;
      if (ghost.requested != allocation.requested || ghost.stream_index != allocation.stream_index) continue;
      if (has_request != lacks_request || has_completion != lacks_completion) continue;
      if (has_request && ghost.free_requested < allocation.begin) continue;
      if (has_completion && ghost.free_completed < allocation.begin) continue;
      if (has_request) take(ghost.free_requested, id, allocation.free_requested);
      if (has_completion) take(ghost.free_completed, id, allocation.free_completed);
      ghost = Allocation{};
      ghost_id = kNoAllocation;
      return;
    }
  }

  void take(uint32_t event, uint32_t id, uint32_t& slot) {
    slot = event;
    timeline_.allocation_of[event] = id;
  }

  Timeline& timeline_;
  std::unordered_set<uint64_t> live_at_end_;
  std::vector<uint32_t> ghosts_;
  std::vector<uint32_t> loose_;
};

}  // namespace

void reconcile_pairs(Timeline& timeline) { Reconciler(timeline).run(); }

}  // namespace oomscope
