// First placements: whole orders tried once, no search.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/packing_index.h"

namespace oomscope {

inline constexpr int64_t kMaxPackingBytes = int64_t{1} << 61;  // no offset + size beyond; sums of two still fit

// Best fit in time order, as an allocator without knowledge of the future would place: n log n. Sets the offsets and
// returns the height, or -1 where it would pass kMaxPackingBytes.
int64_t place_in_time_order(PackProblem* problem);

enum class GreedyOrder { size, area, duration };

// Places the items in this order, each at the lowest gap that is free for its whole life. Subtracts the work from
// *work_units and gives up when none is left. Returns the height, or -1 if it gave up or passed kMaxPackingBytes.
int64_t place_greedily(PackProblem* problem, GreedyOrder order, OverlapIndex* index, int64_t* work_units);

// What greedy placement of all items would cost at least, in work units: twice the pairs of overlapping items, about.
int64_t greedy_work_estimate(const PackProblem& problem);

}  // namespace oomscope
