// Lower bounds on memory: what no allocator can do without, whatever its settings.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace oomscope {

// One allocation in event time, live at t if begin <= t < end. Callers that speak of PyTorch round size_bytes to 512
// first (what it calls allocated) or leave it as requested; the bounds hold for whichever size they are given.
struct Lifetime {
  int64_t size_bytes = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t group = 0;  // which allocations may share a page: pool class x stream; only page_floor_bytes reads it
};

struct Floor {
  int64_t bytes = 0;
  uint32_t at = 0;  // the first event time at which it is reached; 0 if nothing is ever live
};

// Fails with "lifetime-invalid" on a negative size or an end before its begin.
Result<Done> check_lifetimes(std::span<const Lifetime> lifetimes);

// The most bytes ever live at once. Any allocator of any kind needs as much, one that moves data included.
Result<Floor> floor_bytes(std::span<const Lifetime> lifetimes);

// The most bytes of whole pages, over time: sum over groups of that group's live bytes rounded up to its page size.
// See Note [What the page floor bounds] in bounds.cc. page_bytes_of_group[g] > 0 for every group that occurs.
Result<Floor> page_floor_bytes(std::span<const Lifetime> lifetimes, std::span<const int64_t> page_bytes_of_group);

}  // namespace oomscope
