// The state of the allocator before an event: before the first, or somewhere between. See start_state.cc.
#pragma once

#include <vector>

#include "model/timeline.h"

namespace oomscope {

// Fills timeline.start and, for ghosts, Allocation::size. Needs paired events and pools.
void rebuild_start_state(Timeline& timeline, const TimelineOptions& options);

// The same before a later event, of a built timeline whose file was not cut: what was live then takes the ghosts'
// place. As good as a start is, so whoever goes on from it has to see that the events in front lead there.
[[nodiscard]] std::vector<StartSegment> state_before(Timeline& timeline, const TimelineOptions& options,
                                                     uint32_t event);

}  // namespace oomscope
