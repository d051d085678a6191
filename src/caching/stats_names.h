// The statistics under the flattened names of torch.cuda.memory_stats().
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "caching/stats.h"
#include "types/allocator_settings.h"

namespace oomscope {

// ("allocated_bytes.all.peak", bytes), ... in the order of the struct. max_split_size is -1 where unlimited.
[[nodiscard]] std::vector<std::pair<std::string, int64_t>> flat_stats(const Stats& stats,
                                                                      const AllocatorSettings& settings);

}  // namespace oomscope
