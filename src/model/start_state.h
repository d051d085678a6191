// Internal to src/model: the state of the allocator before the first event. See start_state.cc.
#pragma once

#include "model/timeline.h"

namespace oomscope {

// Fills timeline.start and, for ghosts, Allocation::size. Needs paired events and pools.
void rebuild_start_state(Timeline& timeline, const TimelineOptions& options);

}  // namespace oomscope
