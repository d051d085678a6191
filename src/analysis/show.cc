#include "analysis/show.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/user_code.h"
#include "base/bytes_text.h"
#include "model/categories.h"
#include "model/structure.h"

namespace oomscope {
namespace {

constexpr size_t kCurvePoints = 512;

Phrase moment_phrase(Moment moment, uint32_t event, uint32_t events) {
  if (events == 0) return Phrase{.key = "moment.no-history"};
  if (event == kNoEvent) return Phrase{.key = "moment.before"}.with("events", format_count(events));
  const char* key = moment == Moment::peak  ? "moment.peak"
                    : moment == Moment::end ? "moment.end"
                    : moment == Moment::oom ? "moment.oom"
                                            : "moment.event";
  return Phrase{.key = key}.with("event", format_count(event)).with("events", format_count(events));
}

class StateView {
 public:
  StateView(const Verification& verification, GroupBy by)
      : verification_(verification), timeline_(verification.timeline), trace_(timeline_.trace()), by_(by) {
    for (const StartSegment& segment : timeline_.start) {
      for (const StartBlock& block : segment.blocks) {
        if (block.state == StartState::pending) pending_at_start_.insert(block.allocation);
      }
    }
  }

  Result<Shown> run(Moment moment, int64_t event, bool with_curve) {
    OOM_TRY(shown_.event, find_event(moment, event));
    const uint32_t events = static_cast<uint32_t>(trace_.size_events());
    shown_.at = moment_phrase(moment, shown_.event, events);
    fill_peaks(events);
    if (by_ == GroupBy::category) {
      categorize();
    } else {
      collect();
    }
    sum_reserved();
    raise_peaks();
    if (with_curve) {
      const std::vector<int64_t> curve = allocated_curve(verification_, kCurvePoints);
      shown_.allocated_curve.assign(curve.begin(), curve.end());
    }
    shown_.caveats = timeline_.snapshot->caveats;
    shown_.caveats.insert(shown_.caveats.end(), verification_.caveats.begin(), verification_.caveats.end());
    return std::move(shown_);
  }

 private:
  Result<uint32_t> find_event(Moment moment, int64_t event) const {
    const uint32_t events = static_cast<uint32_t>(trace_.size_events());
    switch (moment) {
      case Moment::peak: return verification_.replay->peak_allocated().event;
      case Moment::end: return events == 0 ? kNoEvent : events - 1;
      case Moment::oom:
        for (uint32_t i = events; i-- > 0;) {
          if (trace_.action[i] == Action::oom) return i;
        }
        return Error{.code = "no-oom-event",
                     .what = "error.no-oom-event",
                     .where = "--at oom",
                     .hint = "oomscope show SNAPSHOT --at peak"};
      case Moment::event:
        if (event < static_cast<int64_t>(events)) return static_cast<uint32_t>(event);
        if (events == 0) {
          return Error{.code = "event-out-of-range",
                       .what = "error.no-events",
                       .where = fmt::format("--at {}", event),
                       .hint = "oomscope show SNAPSHOT"};
        }
        return Error{.code = "event-out-of-range",
                     .what = "error.event-out-of-range",
                     .where = fmt::format("--at {}", event),
                     .hint = "oomscope show SNAPSHOT --at end",
                     .values = {{"last", std::to_string(static_cast<int64_t>(events) - 1)}}};
    }
    return 0U;
  }

  void fill_peaks(uint32_t events) {
    shown_.totals.events = events;
    shown_.totals.peak_allocated = verification_.replay->peak_allocated().bytes;
    shown_.totals.peak_reserved = verification_.replay->peak_reserved().bytes;
    shown_.totals.peak_requested = verification_.replay->peak_requested().bytes;
  }

  // Where the replay met a difference, what the recording shows may be more than the replay ever had.
  void raise_peaks() {
    ShowTotals& totals = shown_.totals;
    totals.peak_requested = std::max(totals.peak_requested, totals.requested);
    totals.peak_allocated = std::max(totals.peak_allocated, totals.allocated);
    totals.peak_reserved = std::max(totals.peak_reserved, totals.reserved);
  }

  // A row for each category that ever held a byte; what it held at the moment may be nothing.
  void categorize() {
    const Structure structure = find_structure(timeline_);
    const std::vector<AllocationCategory> categories = find_categories(timeline_, structure);
    const CategorySums sums = sum_categories(timeline_, categories, shown_.event);
    std::array<ShowRow, kCategories> rows;
    std::array<std::map<std::pair<CategoryReason, Confidence>, int64_t>, kCategories> reasons;
    for (uint32_t i = 0; i < timeline_.allocations.size(); ++i) {
      const Allocation& allocation = timeline_.allocations[i];
      const AllocationCategory& category = categories[i];
      const size_t index = static_cast<size_t>(category.category);
      reasons[index][{category.reason, category.confidence}] += allocation.requested;
      if (!is_live_after(allocation, shown_.event)) continue;
      count_total(i);
      rows[index].count += 1;
    }
    for (size_t i = 0; i < kCategories; ++i) {
      ShowRow& row = rows[i];
      if (sums.most[i] == 0) continue;
      row.key = name_of(static_cast<Category>(i));
      row.bytes = sums.at[i];
      row.most_bytes = sums.most[i];
      row.most_at = sums.most_at[i];
      const auto largest = std::max_element(reasons[i].begin(), reasons[i].end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
      row.reason = name_of(largest->first.first);
      row.confidence = largest->first.second;
      shown_.rows.push_back(std::move(row));
    }
    sort_rows();
    shown_.rows.push_back(ShowRow{.key = "[rounding]",
                                  .bytes = sums.rounding_at,
                                  .count = 0,
                                  .most_bytes = sums.rounding_most,
                                  .most_at = sums.rounding_most_at,
                                  .reason = "rounding",
                                  .confidence = Confidence::high});
    shown_.structure = ShownStructure{.steps = static_cast<int64_t>(structure.step_ends.size()),
                                      .passes = static_cast<int64_t>(structure.passes.size()),
                                      .confidence = structure.confidence,
                                      .requests = structure.requests,
                                      .frameless_requests = structure.frameless_requests,
                                      .frameless_placed = structure.frameless_placed};
  }

  void count_total(uint32_t id) {
    const Allocation& allocation = timeline_.allocations[id];
    shown_.totals.active += allocation.size;
    shown_.totals.requested += allocation.requested;
    // No event tells of a free that had been asked for before the first one.
    const bool is_pending = has_happened(allocation.free_requested, shown_.event) || pending_at_start_.contains(id);
    if (!is_pending) shown_.totals.allocated += allocation.size;
  }

  void sort_rows() {
    std::stable_sort(shown_.rows.begin(), shown_.rows.end(),
                     [](const ShowRow& a, const ShowRow& b) { return a.bytes > b.bytes; });
  }

  void collect() {
    std::unordered_map<uint64_t, ShowRow> groups;
    for (uint32_t i = 0; i < timeline_.allocations.size(); ++i) {
      if (!timeline_.allocations.is_live_after(i, shown_.event)) continue;
      count_total(i);
      const Allocation& allocation = timeline_.allocations[i];
      ShowRow& row = groups[key_of(allocation)];
      row.bytes += allocation.size;
      row.count += 1;
    }
    // Different stacks can share the user's line: group once more by what is printed.
    std::map<std::string, ShowRow> by_text;
    for (const auto& [key, group] : groups) {
      ShowRow& row = by_text[text_of(key)];
      row.bytes += group.bytes;
      row.count += group.count;
      row.user_code = by_ != GroupBy::stack || is_user_code(static_cast<StackId>(key));
    }
    for (auto& [text, row] : by_text) {
      row.key = text;
      shown_.rows.push_back(row);
    }
    sort_rows();
  }

  [[nodiscard]] uint64_t key_of(const Allocation& allocation) const {
    switch (by_) {
      case GroupBy::stack: return static_cast<uint64_t>(allocation.stack);
      case GroupBy::category: break;  // categorize()
      case GroupBy::size: return static_cast<uint64_t>(allocation.requested);
      case GroupBy::stream: return allocation.stream_index;
      case GroupBy::segment: return segment_of(allocation.address);
    }
    return 0;
  }

  [[nodiscard]] uint64_t segment_of(uint64_t address) const {
    const std::vector<SnapshotSegment>& segments = timeline_.snapshot->segments;
    for (const SnapshotSegment& segment : segments) {
      if (address - segment.address < static_cast<uint64_t>(segment.total_size)) return segment.address;
    }
    return 0;
  }

  [[nodiscard]] bool is_user_code(StackId stack) const {
    const std::optional<Frame> frame = user_frame(*timeline_.snapshot, stack);
    return frame && !is_library_frame(*timeline_.snapshot, *frame);
  }

  [[nodiscard]] std::string text_of(uint64_t key) const {
    switch (by_) {
      case GroupBy::stack: return site_text(*timeline_.snapshot, static_cast<StackId>(key));
      case GroupBy::category: break;
      case GroupBy::size: return format_bytes(static_cast<int64_t>(key));
      case GroupBy::stream:
        return key < trace_.streams.size() ? std::to_string(static_cast<uint64_t>(trace_.streams[key])) : "";
      case GroupBy::segment: return key == 0 ? "" : format_address(key);
    }
    return "";
  }

  void sum_reserved() {
    int64_t reserved = 0;
    for (const StartSegment& segment : timeline_.start) {
      for (const StartBlock& block : segment.blocks) {
        if (block.state != StartState::unmapped) reserved += block.size;
      }
    }
    for (uint32_t event : timeline_.driver_events) {
      if (!has_happened(event, shown_.event)) break;
      const Action action = trace_.action[event];
      if (action == Action::segment_alloc || action == Action::segment_map) reserved += trace_.size[event];
      if (action == Action::segment_free || action == Action::segment_unmap) reserved -= trace_.size[event];
    }
    shown_.totals.reserved = reserved;
  }

  const Verification& verification_;
  const Timeline& timeline_;
  const Trace& trace_;
  GroupBy by_;
  std::unordered_set<uint32_t> pending_at_start_;  // allocations
  Shown shown_;
};

Phrase pool_phrase(const Segment& segment) {
  Phrase stream;
  const uint64_t id = static_cast<uint64_t>(segment.stream);
  if (id != 0) stream = Phrase{.key = "show.pool.stream"}.with("id", std::to_string(id));
  Phrase owner;
  if (segment.pool->owner != nullptr) {
    const PoolId& pool = segment.pool->owner->id;
    owner = Phrase{.key = "show.pool.owner"}.with("id", fmt::format("{},{}", pool.first, pool.second));
  }
  return Phrase{.key = segment.pool->is_small ? "show.pool.small" : "show.pool.large"}
      .with("on_stream", std::move(stream))
      .with("of_pool", std::move(owner));
}

constexpr size_t kMapCells = 32;

std::string cells_of(const Block* first, const Block* end, uint64_t address, int64_t size) {
  std::vector<int64_t> used(kMapCells, 0);
  const uint64_t cell = std::max<uint64_t>((static_cast<uint64_t>(size) + kMapCells - 1) / kMapCells, 1);
  for (const Block* block = first; block != end; block = block->next) {
    if (block->is_idle()) continue;
    uint64_t at = block->address - address;
    const uint64_t until = at + static_cast<uint64_t>(block->size);
    while (at < until) {
      const uint64_t cell_end = std::min((at / cell + 1) * cell, until);
      used[static_cast<size_t>(at / cell)] += static_cast<int64_t>(cell_end - at);
      at = cell_end;
    }
  }
  std::string map;
  for (size_t i = 0; i < kMapCells && i * cell < static_cast<uint64_t>(size); ++i) {
    const int64_t room = static_cast<int64_t>(std::min<uint64_t>(cell, static_cast<uint64_t>(size) - i * cell));
    map += used[i] == 0 ? '.' : used[i] >= room ? '#' : '+';
  }
  return map;
}

}  // namespace

Result<Shown> show_state(const Verification& verification, Moment moment, int64_t event, GroupBy by, bool with_curve) {
  return StateView(verification, by).run(moment, event, with_curve);
}

std::vector<int64_t> allocated_curve(const Verification& verification, size_t points) {
  const Timeline& timeline = verification.timeline;
  const Trace& trace = timeline.trace();
  const auto size_of = [&](size_t event) {
    const uint32_t id = timeline.allocation_of[event];
    return id == kNoAllocation ? 0 : timeline.allocations.size_of(id);
  };
  int64_t allocated = 0;
  for (const StartSegment& segment : timeline.start) {
    for (const StartBlock& block : segment.blocks) {
      if (block.state == StartState::allocated) allocated += block.size;
    }
  }
  const size_t events = trace.size_events();
  points = std::min(events, points);
  std::vector<int64_t> curve;
  for (size_t point = 0, i = 0; point < points; ++point) {
    int64_t most = allocated;
    for (const size_t end = (point + 1) * events / points; i < end; ++i) {
      // Without branches: which comes next cannot be guessed.
      const Action action = trace.action[i];
      allocated += size_of(i) * (int64_t{action == Action::alloc} - int64_t{action == Action::free_requested});
      most = std::max(most, allocated);
    }
    curve.push_back(most);
  }
  return curve;
}

std::vector<SegmentHarm> segment_map(const Verification& verification, uint32_t event) {
  Timeline timeline = verification.timeline;
  const uint32_t events = static_cast<uint32_t>(timeline.trace().size_events());
  ExactReplay replay(timeline, verification.config);
  replay.run(std::min(event + 1, events));
  std::vector<SegmentHarm> segments;
  for (const Segment* segment : replay.allocator().segments()) {
    // An expandable range is shown run by run, as snapshots do.
    for (const Block* block = segment->first; block != nullptr;) {
      if (!block->mapped) {
        block = block->next;
        continue;
      }
      SegmentHarm harm{.address = block->address,
                       .size = 0,
                       .free_bytes = 0,
                       .live_blocks = 0,
                       .smallest_live = 0,
                       .smallest_site = "",
                       .map = "",
                       .pool = pool_phrase(*segment)};
      const Block* first = block;
      uint32_t smallest = kNoAllocation;
      for (; block != nullptr && block->mapped; block = block->next) {
        harm.size += block->size;
        if (block->is_idle()) {
          harm.free_bytes += block->size;
          continue;
        }
        harm.live_blocks += 1;
        if (harm.smallest_live == 0 || block->size < harm.smallest_live) {
          harm.smallest_live = block->size;
          smallest = static_cast<uint32_t>(block->tag - 1);
        }
      }
      if (harm.live_blocks == 0 || harm.free_bytes == 0) continue;
      if (smallest < timeline.allocations.size()) {
        harm.smallest_site = site_text(*timeline.snapshot, timeline.allocations[smallest].stack);
      }
      harm.map = cells_of(first, block, harm.address, harm.size);
      segments.push_back(std::move(harm));
    }
  }
  std::sort(segments.begin(), segments.end(), [](const SegmentHarm& a, const SegmentHarm& b) {
    return a.free_bytes != b.free_bytes ? a.free_bytes > b.free_bytes : a.address < b.address;
  });
  return segments;
}

}  // namespace oomscope
