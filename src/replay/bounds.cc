// Two bounds from one sweep.
//
// The floor is the highest prefix sum of +size at each begin and -size at each end. Event times are dense in a
// recording (two lifetimes' ends per time at most), so the sums lie in one array indexed by time; sparse times are
// first replaced by their rank. Frees come before allocations at equal times because ranges are half-open:
//
//   time      0    1    2    3    4          A = 300 live in [0,3), B = 200 in [1,2), C = 250 in [2,4)
//   A       |==============|
//   B            |====|                      floor = 550 at time 2 (A + C), not 750: B is gone when C comes
//   C                 |=========|
//
// Note [What the page floor bounds]
// It bounds the physical memory of an allocator over virtual memory that (a) backs addresses with whole pages of one
// size per group and (b) never lets two groups share a page. At any time the live bytes of group g lie in at least
// ceil(live_g / page_g) pages and all of these are mapped, so the sum over groups is mapped at that time. It holds even
// with perfect knowledge of the future, and also for allocators that move data. PyTorch's expandable segments are of
// this class: one address range for each (pool class, stream, private pool), 2 MiB pages for requests of at most 1 MiB
// and 20 MiB pages for larger ones (kSmallBuffer and kLargeBuffer in c10/cuda/CUDACachingAllocator.cpp). An allocator
// that maps pages of one size and shares them freely is the case of a single group: the floor rounded up to a page.
//
// Left out: more is provable for allocators that never move data, since what shares a page with a live allocation is
// then fixed for its life. Such a bound needs a search as hard as packing itself, and could add little on recordings
// whose best packing lies within 1 % of the floor.
//
// Cost: linear in lifetimes and times; n log n if times are sparse. 64-bit sums are checked.
#include "replay/bounds.h"

#include <algorithm>
#include <string>
#include <vector>

namespace oomscope {
namespace {

Error overflow_error() {
  return {"live-bytes-overflow", "error.live-bytes-overflow", "error.live-bytes-overflow.where",
          "error.live-bytes-overflow.hint"};
}

// Maps event times to indexes. Raw times serve when they are dense; else `sorted` holds the distinct ones.
struct TimeAxis {
  std::vector<uint32_t> sorted;  // empty if an index is the time itself
  size_t count = 0;              // number of indexes

  [[nodiscard]] size_t index(uint32_t time) const {
    if (sorted.empty()) return time;
    return static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), time) - sorted.begin());
  }
  [[nodiscard]] uint32_t time(size_t index) const {
    return sorted.empty() ? static_cast<uint32_t>(index) : sorted[index];
  }
};

TimeAxis make_time_axis(std::span<const Lifetime> lifetimes) {
  uint32_t last = 0;
  for (const Lifetime& lifetime : lifetimes) last = std::max(last, lifetime.end);
  TimeAxis axis;
  axis.count = static_cast<size_t>(last) + 1;
  if (axis.count <= 8 * lifetimes.size() + 4096) return axis;
  axis.sorted.reserve(2 * lifetimes.size());
  for (const Lifetime& lifetime : lifetimes) {
    axis.sorted.push_back(lifetime.begin);
    axis.sorted.push_back(lifetime.end);
  }
  std::sort(axis.sorted.begin(), axis.sorted.end());
  axis.sorted.erase(std::unique(axis.sorted.begin(), axis.sorted.end()), axis.sorted.end());
  axis.count = axis.sorted.size();
  return axis;
}

bool add(int64_t* sum, int64_t value) { return !__builtin_add_overflow(*sum, value, sum); }

// bytes rounded up to a page; false if that does not fit.
bool round_up(int64_t bytes, int64_t page_bytes, int64_t* rounded) {
  int64_t pages = bytes / page_bytes + (bytes % page_bytes != 0 ? 1 : 0);
  return !__builtin_mul_overflow(pages, page_bytes, rounded);
}

// A change of one group's live bytes. Changes of one time are neighbours in the order that order_changes gives them.
struct Change {
  int64_t delta_bytes = 0;
  uint32_t group = 0;
};

// All begins and ends, grouped by time: those of time index k are changes[first[k] .. first[k + 1]).
void order_changes(std::span<const Lifetime> lifetimes, const TimeAxis& axis, std::vector<size_t>* first,
                   std::vector<Change>* changes) {
  first->assign(axis.count + 1, 0);
  for (const Lifetime& lifetime : lifetimes) {
    ++(*first)[axis.index(lifetime.begin) + 1];
    ++(*first)[axis.index(lifetime.end) + 1];
  }
  for (size_t i = 1; i < first->size(); ++i) (*first)[i] += (*first)[i - 1];
  std::vector<size_t> next(first->begin(), first->end() - 1);
  changes->resize(2 * lifetimes.size());
  for (const Lifetime& lifetime : lifetimes) {
    (*changes)[next[axis.index(lifetime.end)]++] = {-lifetime.size_bytes, lifetime.group};
    (*changes)[next[axis.index(lifetime.begin)]++] = {lifetime.size_bytes, lifetime.group};
  }
}

Result<Done> check_pages(std::span<const Lifetime> lifetimes, std::span<const int64_t> page_bytes_of_group) {
  for (const Lifetime& lifetime : lifetimes) {
    if (lifetime.group < page_bytes_of_group.size() && page_bytes_of_group[lifetime.group] > 0) continue;
    return Error{"page-size-missing",
                 "error.page-size-missing",
                 "error.at-group",
                 "",
                 {{"index", std::to_string(lifetime.group)}}};
  }
  return Done{};
}

}  // namespace

Result<Done> check_lifetimes(std::span<const Lifetime> lifetimes) {
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& lifetime = lifetimes[i];
    if (lifetime.size_bytes >= 0 && lifetime.begin <= lifetime.end) continue;
    return Error{"lifetime-invalid", "error.lifetime-invalid", "error.at-lifetime", "", {{"index", std::to_string(i)}}};
  }
  return Done{};
}

Result<Floor> floor_bytes(std::span<const Lifetime> lifetimes) {
  OOM_TRY([[maybe_unused]] Done valid, check_lifetimes(lifetimes));
  TimeAxis axis = make_time_axis(lifetimes);
  std::vector<int64_t> delta_bytes(axis.count, 0);
  for (const Lifetime& lifetime : lifetimes) {
    if (!add(&delta_bytes[axis.index(lifetime.end)], -lifetime.size_bytes)) return overflow_error();
    if (!add(&delta_bytes[axis.index(lifetime.begin)], lifetime.size_bytes)) return overflow_error();
  }
  Floor floor;
  int64_t live_bytes = 0;
  for (size_t i = 0; i < axis.count; ++i) {
    if (!add(&live_bytes, delta_bytes[i])) return overflow_error();
    if (live_bytes > floor.bytes) floor = {live_bytes, axis.time(i)};
  }
  return floor;
}

Result<Floor> page_floor_bytes(std::span<const Lifetime> lifetimes, std::span<const int64_t> page_bytes_of_group) {
  OOM_TRY([[maybe_unused]] Done valid, check_lifetimes(lifetimes));
  OOM_TRY([[maybe_unused]] Done pages, check_pages(lifetimes, page_bytes_of_group));
  TimeAxis axis = make_time_axis(lifetimes);
  std::vector<size_t> first;
  std::vector<Change> changes;
  order_changes(lifetimes, axis, &first, &changes);

  Floor floor;
  std::vector<int64_t> live_bytes(page_bytes_of_group.size(), 0);
  int64_t mapped_bytes = 0;  // = sum over groups of round_up(live_bytes[g])
  for (size_t i = 0; i < axis.count; ++i) {
    // Ends first, so that no sum exceeds what is really live at this time.
    for (bool begins : {false, true}) {
      for (size_t k = first[i]; k < first[i + 1]; ++k) {
        const Change& change = changes[k];
        if ((change.delta_bytes > 0) != begins) continue;
        int64_t page_bytes = page_bytes_of_group[change.group];
        int64_t before = 0;
        int64_t after = 0;
        // An empty range begins and ends at one time: its end alone would take the live bytes below zero for a moment.
        if (!round_up(live_bytes[change.group], page_bytes, &before)) return overflow_error();
        if (!add(&live_bytes[change.group], change.delta_bytes)) return overflow_error();
        if (!round_up(live_bytes[change.group], page_bytes, &after)) return overflow_error();
        if (!add(&mapped_bytes, -before) || !add(&mapped_bytes, after)) return overflow_error();
      }
    }
    if (mapped_bytes > floor.bytes) floor = {mapped_bytes, axis.time(i)};
  }
  return floor;
}

}  // namespace oomscope
