// Building a timeline: pair the events, find the pools, then hand over to start_state.cc.
#include "model/timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "model/pairing.h"
#include "model/start_state.h"

namespace oomscope {
namespace {

struct PoolRange {
  uint64_t end;
  uint32_t since;  // the segment was obtained at this event; 0: before the recording or unknown
  uint32_t pool;
};
using PoolRanges = std::map<uint64_t, PoolRange>;  // by address

// All that was ever mapped of one expandable range, as far as the recording tells.
struct MappedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  int64_t mapped_bytes = 0;  // at the end of the recording
  std::optional<PoolId> pool = {};
  bool is_of_several = false;
};

// Expandable ranges are as long as the card and used from their beginning, so what lies near each other is of one.
std::vector<MappedRange> mapped_ranges(const Timeline& timeline) {
  constexpr uint64_t kFar = uint64_t{4} << 30;
  const Trace& trace = timeline.trace();
  std::vector<MappedRange> pieces;
  for (const SnapshotSegment& segment : timeline.snapshot->segments) {
    if (segment.device != timeline.device || !segment.is_expandable) continue;
    pieces.push_back({.begin = segment.address,
                      .end = segment.address + static_cast<uint64_t>(segment.total_size),
                      .mapped_bytes = segment.total_size,
                      .pool = segment.pool});
  }
  for (uint32_t event : timeline.driver_events) {
    if (trace.action[event] != Action::segment_map && trace.action[event] != Action::segment_unmap) continue;
    pieces.push_back({.begin = trace.addr[event], .end = trace.addr[event] + static_cast<uint64_t>(trace.size[event])});
  }
  std::sort(pieces.begin(), pieces.end(), [](const MappedRange& a, const MappedRange& b) { return a.begin < b.begin; });
  std::vector<MappedRange> ranges;
  for (const MappedRange& piece : pieces) {
    if (ranges.empty() || (piece.begin > ranges.back().end && piece.begin - ranges.back().end >= kFar)) {
      ranges.push_back(piece);
      continue;
    }
    MappedRange& range = ranges.back();
    range.end = std::max(range.end, piece.end);
    range.mapped_bytes += piece.mapped_bytes;
    range.is_of_several = range.is_of_several || (range.pool && piece.pool && !(*range.pool == *piece.pool));
    if (!range.pool) range.pool = piece.pool;
  }
  return ranges;
}

// Pages that were unmapped before the end name no pool, but a range is of one pool until none of its pages is mapped.
void add_expandable_ranges(Timeline& timeline, PoolRanges& ranges) {
  const Trace& trace = timeline.trace();
  std::vector<MappedRange> mapped = mapped_ranges(timeline);
  std::erase_if(
      mapped, [](const MappedRange& range) { return range.is_of_several || !range.pool || range.pool->is_default(); });
  if (mapped.empty()) return;
  std::map<uint64_t, MappedRange*> open;  // not yet seen empty, going back
  for (MappedRange& range : mapped) {
    ranges.erase(ranges.lower_bound(range.begin), ranges.lower_bound(range.end));
    ranges[range.begin] = PoolRange{.end = range.end, .since = 0, .pool = timeline.pool_index(*range.pool)};
    open[range.begin] = &range;
  }
  for (size_t i = timeline.driver_events.size(); i-- > 0 && !open.empty();) {
    const uint32_t event = timeline.driver_events[i];
    const bool maps = trace.action[event] == Action::segment_map;
    const auto above = open.upper_bound(trace.addr[event]);
    if ((!maps && trace.action[event] != Action::segment_unmap) || above == open.begin()) continue;
    MappedRange& range = *std::prev(above)->second;
    if (trace.addr[event] >= range.end) continue;
    range.mapped_bytes += maps ? -trace.size[event] : trace.size[event];
    if (!maps || range.mapped_bytes > 0) continue;
    ranges[range.begin].since = event;
    open.erase(std::prev(above));
  }
}

// From torch 2.12 on every event names its pool. Before, an allocation is in the pool of the segment that held its
// address at that time; a segment that was freed before the dump left no trace of its pool and counts as default.
void find_pools(Timeline& timeline) {
  timeline.pool_index(PoolId{});
  const Trace& trace = timeline.trace();
  if (!trace.pool.empty()) {
    for (Allocation& allocation : timeline.allocations) {
      const uint32_t event = first_event_of(allocation);
      if (event != kNoEvent) allocation.pool_index = timeline.pool_index(trace.pool[event]);
    }
    return;
  }
  PoolRanges ranges;
  for (const SnapshotSegment& segment : timeline.snapshot->segments) {
    if (segment.device != timeline.device || segment.pool.is_default()) continue;
    ranges[segment.address] = PoolRange{.end = segment.address + static_cast<uint64_t>(segment.total_size),
                                        .since = 0,
                                        .pool = timeline.pool_index(segment.pool)};
  }
  if (ranges.empty()) return;
  for (uint32_t event : timeline.driver_events) {
    if (trace.action[event] != Action::segment_alloc) continue;
    auto found = ranges.find(trace.addr[event]);
    if (found != ranges.end()) found->second.since = event;  // the last one is the one that is left
  }
  add_expandable_ranges(timeline, ranges);
  for (Allocation& allocation : timeline.allocations) {
    auto above = ranges.upper_bound(allocation.address);
    if (above == ranges.begin()) continue;
    const PoolRange& range = std::prev(above)->second;
    const uint32_t last_event = allocation.free_completed != kNoEvent ? allocation.free_completed : kNoEvent - 1;
    if (allocation.address < range.end && (range.since == 0 || last_event > range.since)) {
      allocation.pool_index = range.pool;
    }
  }
}

// What replay found out about pools that were gone at the end. Memory is one pool's at a time, so of spans that overlap
// the later one holds from its begin on.
class PoolSpans {
 public:
  explicit PoolSpans(std::vector<PoolSpan> spans) : spans_(std::move(spans)) {
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const PoolSpan& a, const PoolSpan& b) { return a.begin < b.begin; });
  }

  // Asked with `event` ascending; nullptr if no span held the address then.
  const PoolSpan* at(uint64_t address, uint32_t event) {
    for (; next_ < spans_.size() && spans_[next_].begin <= event; ++next_) open(spans_[next_]);
    auto above = open_.upper_bound(address);
    if (above == open_.begin()) return nullptr;
    const PoolSpan& span = *std::prev(above)->second;
    const bool inside = address - span.address < static_cast<uint64_t>(span.size);
    return inside && event < span.end ? &span : nullptr;
  }

 private:
  void open(const PoolSpan& span) {
    auto first = open_.upper_bound(span.address);
    if (first != open_.begin()) {
      const PoolSpan& before = *std::prev(first)->second;
      if (span.address - before.address < static_cast<uint64_t>(before.size)) --first;
    }
    while (first != open_.end() &&
           (first->first < span.address || first->first - span.address < static_cast<uint64_t>(span.size))) {
      first = open_.erase(first);
    }
    open_[span.address] = &span;
  }

  std::vector<PoolSpan> spans_;  // by begin
  size_t next_ = 0;
  std::map<uint64_t, const PoolSpan*> open_;
};

void apply_pool_spans(Timeline& timeline, const std::vector<PoolSpan>& spans) {
  if (spans.empty()) return;
  PoolSpans pools(spans);
  auto apply = [&](Allocation& allocation, uint32_t event) {
    const PoolSpan* span = pools.at(allocation.address, event);
    if (span != nullptr) allocation.pool_index = timeline.pool_index(span->pool);
  };
  for (Allocation& allocation : timeline.allocations) {
    if (allocation.begin == kNoEvent) apply(allocation, 0);
  }
  for (Allocation& allocation : timeline.allocations) {  // in the order of their begins
    if (allocation.begin != kNoEvent) apply(allocation, allocation.begin);
  }
}

}  // namespace

Timeline build_timeline(const Snapshot& snapshot, int32_t device, const TimelineOptions& options,
                        std::optional<Pairs> pairs) {
  Timeline timeline;
  timeline.snapshot = &snapshot;
  timeline.device = device;
  timeline.corrected = options.corrected;
  if (!pairs || options.corrected != nullptr) pairs = pair_events(timeline.trace());
  timeline.allocations = std::move(pairs->allocations);
  timeline.allocation_of = std::move(pairs->allocation_of);
  timeline.driver_events = std::move(pairs->driver_events);
  timeline.unfinished = std::move(pairs->unfinished);
  timeline.orphan_frees = pairs->orphan_frees;
  find_pools(timeline);
  apply_pool_spans(timeline, options.pool_spans);
  rebuild_start_state(timeline, options);
  return timeline;
}

std::vector<int32_t> devices_of(const Snapshot& snapshot) {
  // Each dump writes an event into the trace of every device, used or not.
  const auto worked = [](const Trace& trace) {
    return std::any_of(trace.action.begin(), trace.action.end(), [](Action a) { return a != Action::snapshot; });
  };
  std::vector<int32_t> devices;
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    if (worked(snapshot.traces[i])) devices.push_back(static_cast<int32_t>(i));
  }
  if (!devices.empty()) return devices;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (std::find(devices.begin(), devices.end(), segment.device) == devices.end()) devices.push_back(segment.device);
  }
  return devices;
}

}  // namespace oomscope
