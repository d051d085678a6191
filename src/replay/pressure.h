// What a recording's driver events say about a limit, before anything is replayed.
#pragma once

#include <cstdint>
#include <optional>

#include "caching/rules.h"
#include "model/timeline.h"
#include "types/allocator_settings.h"

namespace oomscope {

// What a pass over the driver events alone shows.
struct Pressure {
  int64_t largest_allowed = 0;              // reserved + request of a driver call that succeeded
  std::optional<int64_t> smallest_refused;  // of an oom entry that was not the card's doing
  int64_t ooms = 0;
  int64_t driver_ooms = 0;
  int64_t most_reserved = 0;
  bool suspected_retry = false;  // releases, then a segment, above the largest total ever allowed
  bool releases = false;
};

// One pass over the driver events.
[[nodiscard]] Pressure find_pressure(const Timeline& timeline, const AllocatorSettings& settings, const RuleSet& rules);

}  // namespace oomscope
