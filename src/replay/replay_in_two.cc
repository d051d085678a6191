// An exact replay is one long chain: where a block goes depends on all that went before. But the state in the middle is
// known without replaying what leads there: it can be rebuilt from the end, as the start is (model/start_state.h).
//
//   first half    start ----replay----> state in the middle        these two must be
//   second half                         state rebuilt there ----replay----> end          the same
//
// The second half begins from what was rebuilt while the first is still being replayed. If both replay without a
// difference and the first ends in the very state from which the second began, that is the replay of the whole. If not,
// the rebuilt state may have been wrong, and nothing is said.
#include "replay/replay_in_two.h"

#include <algorithm>
#include <map>
#include <vector>

#include "model/start_state.h"
#include "replay/parallel.h"

namespace oomscope {
namespace {

// What the state in the middle consists of must be visible in it: no ages, no numbers of segments, no pools' scopes, no
// ranges of addresses, no limit.
bool is_plain(const Timeline& timeline, const ReplayConfig& config) {
  const Trace& trace = timeline.trace();
  const bool all_ordinary = std::all_of(
      timeline.snapshot->segments.begin(), timeline.snapshot->segments.end(), [&](const SnapshotSegment& segment) {
        return segment.device != timeline.device || (segment.pool.is_default() && !segment.is_expandable);
      });
  const bool all_common =
      std::all_of(timeline.driver_events.begin(), timeline.driver_events.end(), [&](uint32_t event) {
        const bool has_pages =
            trace.action[event] == Action::segment_map || trace.action[event] == Action::segment_unmap;
        return !has_pages && (trace.pool.empty() || trace.pool[event].is_default());
      });
  const bool has_placements = !trace.forced.empty() || !trace.restored.empty();
  if (!all_ordinary || !all_common || has_placements) return false;
  return timeline.snapshot->complete && timeline.corrected == nullptr && timeline.pools.size() == 1 &&
         config.rules.tie_break == TieBreak::address && !config.limit_bytes && !config.driver_refuses &&
         config.settings.garbage_collection_threshold <= 0 && !config.settings.expandable_segments &&
         std::none_of(timeline.start.begin(), timeline.start.end(),
                      [](const StartSegment& segment) { return segment.is_expandable; });
}

// A place between two calls, a little behind the middle: rebuilding its state takes as long as a tenth of the replay.
// kNoEvent if there is none.
uint32_t find_middle(const Trace& trace) {
  const uint32_t events = static_cast<uint32_t>(trace.size_events());
  for (uint32_t event = events / 100 * 52; event < events / 100 * 62; ++event) {
    if (trace.action[event] == Action::alloc && trace.action[event - 1] == Action::alloc) return event;
  }
  return kNoEvent;
}

bool is_same_block(const Block& block, const StartBlock& expected) {
  if (block.size != expected.size || block.allocated != (expected.state == StartState::allocated) ||
      block.is_idle() != (expected.state == StartState::free)) {
    return false;
  }
  return block.is_idle() ||
         (block.tag == tag_of(expected.allocation) && block.requested_size == expected.requested_size);
}

// `expected` is ascending by address.
bool has_come_to(const CachingAllocator& allocator, const std::vector<StartSegment>& expected) {
  std::map<uint64_t, const Segment*> segments;
  for (const Segment* segment : allocator.segments()) segments[segment->address] = segment;
  return std::equal(segments.begin(), segments.end(), expected.begin(), expected.end(),
                    [](const auto& entry, const StartSegment& want) {
                      const Segment* segment = entry.second;
                      if (segment->address != want.address || segment->size_bytes != want.size ||
                          segment->stream != want.stream || segment->pool->is_small != want.is_small) {
                        return false;
                      }
                      const Block* block = segment->first;
                      for (const StartBlock& wanted : want.blocks) {
                        if (block == nullptr || !is_same_block(*block, wanted)) return false;
                        block = block->next;
                      }
                      return block == nullptr;
                    });
}

void forget_sizes(Timeline& timeline) {
  for (size_t id = 0; id < timeline.allocations.size(); ++id) {
    if (timeline.allocations.events_of(id).begin != kNoEvent) timeline.allocations.set_size(id, 0);
  }
}

}  // namespace

std::unique_ptr<ExactReplay> replay_in_two(Timeline& timeline, const ReplayConfig& config, size_t least_events) {
  const Trace& trace = timeline.trace();
  if (trace.size_events() < least_events || !is_plain(timeline, config)) return nullptr;
  const uint32_t middle = find_middle(trace);
  if (middle == kNoEvent) return nullptr;
  std::vector<StartSegment> between;
  std::unique_ptr<ExactReplay> halves[2];
  run_parallel(2, 2, [&](size_t half) {
    if (half == 0) {
      halves[0] = std::make_unique<ExactReplay>(timeline, config);
      halves[0]->touch_tables(middle);
      halves[0]->run(middle, true);
    } else {
      const auto round = [&](int64_t request) { return round_size(request, config.settings, config.rules); };
      between = state_before(timeline, {.round = round}, middle);
      halves[1] = std::make_unique<ExactReplay>(timeline, config, between, middle);
      halves[1]->touch_tables(kNoEvent);
      halves[1]->run(kNoEvent, true);
    }
  });
  const bool are_exact = !halves[0]->first_difference() && !halves[1]->first_difference();
  if (!are_exact || !has_come_to(halves[0]->allocator(), between)) {
    forget_sizes(timeline);
    return nullptr;
  }
  halves[1]->append_to(*halves[0]);
  return std::move(halves[1]);
}

}  // namespace oomscope
