// Expandable ranges: which addresses were of one expandable segment, and when.
#pragma once

#include <optional>
#include <vector>

#include "model/timeline.h"

namespace oomscope {

// An expandable segment, from the event by which any of its range was mapped until none of it is: all that time it is
// of one pool. Another may lie there later.
struct RangeLife {
  uint64_t address = 0;  // [address, address + size): all that was ever mapped of the range
  int64_t size = 0;
  uint32_t from = 0;       // the event that mapped it first; 0: it may have been there before
  uint32_t to = kNoEvent;  // the event that unmapped the last of it; kNoEvent: mapped at the end
  StreamId stream{};
  bool is_small = false;
  std::optional<PoolId> pool = {};  // of the final segment in it; empty: nothing names it
};

// Of the events in `timeline.driver_events` and the final segments; ranges whose segments are of several pools are left
// out. `large_page_bytes`: see TimelineOptions.
[[nodiscard]] std::vector<RangeLife> range_lives(const Timeline& timeline, int64_t large_page_bytes);

}  // namespace oomscope
