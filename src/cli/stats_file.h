// torch.cuda.memory_stats() as a JSON file, compared with the model's statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "caching/stats.h"
#include "types/allocator_settings.h"

namespace oomscope {

struct StatsDifference {
  std::string name;
  int64_t recorded = 0;
  int64_t model = 0;
};

struct StatsComparison {
  int64_t total = 0;  // numbers that both have
  int64_t equal = 0;
  std::vector<StatsDifference> differences;
};

// The file is the dictionary itself, or has it under "stats" or "memory_stats". num_sync_all_streams is left out: it
// counts waits that freed nothing, which no trace shows. Errors: those of read_small_file, stats-not-json, stats-empty.
[[nodiscard]] Result<StatsComparison> compare_stats_file(const std::string& path, const Stats& stats,
                                                         const AllocatorSettings& settings);
[[nodiscard]] Result<StatsComparison> compare_stats_text(const std::string& text, const std::string& name,
                                                         const Stats& stats, const AllocatorSettings& settings);

}  // namespace oomscope
