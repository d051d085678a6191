// The best explicit placement found: an upper bound on the memory that a recording needs, next to its floor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "replay/bounds.h"

namespace oomscope {

// A work unit is one neighbour looked at, 20 to 50 ns. Effort is counted in units, never in time, so that the same
// input gives the same bytes on every machine. The first placement costs no units and is always made.
inline constexpr int64_t kQuickPackingWork = 12'000'000;
inline constexpr int64_t kThoroughPackingWork = 60'000'000;

struct PackingOptions {
  int64_t work_units = kQuickPackingWork;
};

// offsets_bytes[i] is where lifetimes[i] lies; height_bytes = max(offset + size), 0 if nothing is ever live. The
// heights and offsets are multiples of the sizes' greatest common divisor, so sizes rounded to 512 stay aligned.
struct Packing {
  int64_t height_bytes = 0;
  int64_t floor_bytes = 0;  // equal to height_bytes: no smaller packing exists
  std::vector<int64_t> offsets_bytes;
  std::string method;  // how the placement was found, for people
};

// Searches for a placement of least height in which no two allocations that are live at once overlap. Fails on invalid
// lifetimes and where offsets would pass 2^61. Check the result with check_packing before it is shown.
Result<Packing> pack_lifetimes(std::span<const Lifetime> lifetimes, const PackingOptions& options = {});

}  // namespace oomscope
