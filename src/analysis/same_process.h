// Are two recordings of one process? What both hold of its history is equal to the microsecond and the address.
#pragma once

#include <cstdint>
#include <vector>

#include "types/snapshot.h"

namespace oomscope {

// Hashes of a recording's events, ascending: the few hundred smallest of all, so that two recordings which share events
// share hashes. Empty where events have no times.
using EventSample = std::vector<uint64_t>;

[[nodiscard]] EventSample sample_events(const Trace& trace);
[[nodiscard]] bool is_same_process(const EventSample& a, const EventSample& b);

}  // namespace oomscope
