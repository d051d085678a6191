// Internal to src/model: events that contradict each other. See reconcile.cc.
#pragma once

#include "model/timeline.h"

namespace oomscope {

// Ties frees without an allocation to allocations without a free, where both must be the same block. Needs paired
// events; ghosts that were tied are emptied (no events, no size).
void reconcile_pairs(Timeline& timeline);

}  // namespace oomscope
