// Does a run compute in 16 bits already? A snapshot holds no types, but sizes and stacks give them away.
#pragma once

#include <vector>

#include "model/categories.h"
#include "model/structure.h"

namespace oomscope {

// See Note [What tells 16 bits] in precision.cc. Linear in allocations.
[[nodiscard]] bool computes_in_16_bits(const Timeline& timeline, const Structure& structure,
                                       const std::vector<AllocationCategory>& categories);

}  // namespace oomscope
