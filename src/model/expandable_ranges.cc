#include "model/expandable_ranges.h"

#include <algorithm>
#include <map>

namespace oomscope {
namespace {

// All that was ever mapped of one range. Going back through the events, `life` is the one that is open.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  int64_t mapped_bytes = 0;  // at the end of the recording; then before the event that was looked at
  std::optional<RangeLife> life = {};
  bool is_of_several = false;
};

Range range_of(const SnapshotSegment& segment) {
  return {.begin = segment.address,
          .end = segment.address + static_cast<uint64_t>(segment.total_size),
          .mapped_bytes = segment.total_size,
          .life = RangeLife{.stream = segment.stream, .is_small = !segment.is_large, .pool = segment.pool}};
}

void join(Range& range, const Range& piece) {
  range.end = std::max(range.end, piece.end);
  range.mapped_bytes += piece.mapped_bytes;
  range.is_of_several = range.is_of_several || (range.life && piece.life && range.life->pool != piece.life->pool);
  if (!range.life) range.life = piece.life;
}

// Ranges are as long as the card and used from their beginning, so what lies near each other is of one.
std::map<uint64_t, Range> find_ranges(const Timeline& timeline) {
  constexpr uint64_t kFar = uint64_t{4} << 30;
  const Trace& trace = timeline.trace();
  std::vector<Range> pieces;
  for (const SnapshotSegment& segment : timeline.snapshot->segments) {
    if (segment.device == timeline.device && segment.is_expandable) pieces.push_back(range_of(segment));
  }
  for (const uint32_t event : timeline.driver_events) {
    if (trace.action[event] != Action::segment_map && trace.action[event] != Action::segment_unmap) continue;
    pieces.push_back({.begin = trace.addr[event], .end = trace.addr[event] + static_cast<uint64_t>(trace.size[event])});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::map<uint64_t, Range> ranges;
  Range* last = nullptr;
  for (const Range& piece : pieces) {
    if (last != nullptr && (piece.begin <= last->end || piece.begin - last->end < kFar)) {
      join(*last, piece);
    } else {
      last = &ranges.emplace(piece.begin, piece).first->second;
    }
  }
  std::erase_if(ranges, [](const auto& entry) { return entry.second.is_of_several; });
  return ranges;
}

}  // namespace

std::vector<RangeLife> range_lives(const Timeline& timeline, int64_t large_page_bytes) {
  const Trace& trace = timeline.trace();
  std::map<uint64_t, Range> ranges = find_ranges(timeline);
  std::vector<RangeLife> lives;
  const auto close = [&lives](Range& range, uint32_t from) {
    range.life->address = range.begin;
    range.life->size = static_cast<int64_t>(range.end - range.begin);
    range.life->from = from;
    lives.push_back(*range.life);
    range.life.reset();
    range.mapped_bytes = 0;
  };
  for (size_t i = timeline.driver_events.size(); i-- > 0;) {
    const uint32_t event = timeline.driver_events[i];
    const bool maps = trace.action[event] == Action::segment_map;
    const auto above = ranges.upper_bound(trace.addr[event]);
    if ((!maps && trace.action[event] != Action::segment_unmap) || above == ranges.begin()) continue;
    Range& range = std::prev(above)->second;
    if (trace.addr[event] >= range.end) continue;
    if (!range.life) {
      if (maps) continue;  // never unmapped, and not there at the end: the recording is damaged
      range.life = RangeLife{.to = event, .stream = trace.stream(event)};
    }
    const bool is_small = trace.size[event] % large_page_bytes != 0;
    range.life->is_small = range.life->is_small || is_small;
    range.mapped_bytes += maps ? -trace.size[event] : trace.size[event];
    if (maps && range.mapped_bytes <= 0) close(range, event);
  }
  for (auto& [begin, range] : ranges) {
    if (range.life) close(range, 0);
  }
  return lives;
}

}  // namespace oomscope
