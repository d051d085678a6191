// Two halves of a recording replayed at the same time.
#pragma once

#include <memory>

#include "model/timeline.h"
#include "replay/exact_replay.h"

namespace oomscope {

// Replays all of `timeline`, its two halves on a thread each, and gives the second with the first appended: what
// ExactReplay::run() gives, but for statistics, which begin in the middle. nullptr: it is too short or too intricate
// for that, or differs somewhere; then nothing has been done. `least_events`: fewer take less time than a thread.
[[nodiscard]] std::unique_ptr<ExactReplay> replay_in_two(Timeline& timeline, const ReplayConfig& config,
                                                         size_t least_events = 200'000);

}  // namespace oomscope
