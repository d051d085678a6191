// Verifies an explicit placement. Shares no code with the packer, and no technique.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "replay/bounds.h"
#include "replay/packing.h"

namespace oomscope {

// Succeeds if every lifetime of some size and duration has an offset of at least 0, no two that are live at once
// overlap, and height_bytes is exactly the highest end: then that many bytes provably suffice.
// Fails with "packing-wrong" and the first two overlapping lifetimes in event time. n log n.
Result<Done> check_packing(std::span<const Lifetime> lifetimes, const Packing& packing);

}  // namespace oomscope
