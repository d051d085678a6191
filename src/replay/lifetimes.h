// Lifetimes: what a recording keeps alive from when to when, for the bounds that no allocator can beat.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/bounds.h"
#include "replay/verify.h"

namespace oomscope {

struct LifetimeTable {
  std::vector<Lifetime> requested;  // sizes as requested: for floor_bytes, which equals requested_bytes.all.peak
  std::vector<Lifetime> rounded;    // sizes in whole 512 bytes, grouped by pool class and stream: for packing and pages
  std::vector<int64_t> page_bytes;  // by group: 2 MiB (small) or 20 MiB (large), as expandable segments map
};

// Time t is before event t; blocks of the start begin at 0. An allocation lives until its free has completed. With
// `until`, only what begins before that event, and everything alive then ends there.
[[nodiscard]] LifetimeTable lifetimes_of(const Verification& verification, uint32_t until = kNoEvent);

// All of the recording, and the request that it died of: what completing it would take.
[[nodiscard]] LifetimeTable lifetimes_to_complete(const Verification& verification);

// Adds a request that lives from `event` on to the end: one that failed.
void add_request(LifetimeTable& table, const Verification& verification, uint32_t event, int64_t size_bytes);

}  // namespace oomscope
