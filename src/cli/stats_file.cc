#include "cli/stats_file.h"

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace oomscope {
namespace {

using Numbers = std::map<std::string, int64_t>;

void add_stat(const std::string& name, const Stat& stat, Numbers& numbers) {
  numbers[name + ".current"] = stat.current;
  numbers[name + ".peak"] = stat.peak;
  numbers[name + ".allocated"] = stat.allocated();
  numbers[name + ".freed"] = stat.freed;
}

void add_array(const std::string& name, const StatArray& array, Numbers& numbers) {
  add_stat(name + ".all", array.all, numbers);
  add_stat(name + ".large_pool", array.large, numbers);
  add_stat(name + ".small_pool", array.small, numbers);
}

// Names as torch.cuda.memory_stats() makes them: the nested dictionary's keys joined by dots.
Numbers numbers_of(const Stats& stats, const AllocatorSettings& settings) {
  Numbers numbers;
  add_array("allocation", stats.allocation, numbers);
  add_array("segment", stats.segment, numbers);
  add_array("active", stats.active, numbers);
  add_array("inactive_split", stats.inactive_split, numbers);
  add_array("allocated_bytes", stats.allocated_bytes, numbers);
  add_array("reserved_bytes", stats.reserved_bytes, numbers);
  add_array("active_bytes", stats.active_bytes, numbers);
  add_array("inactive_split_bytes", stats.inactive_split_bytes, numbers);
  add_array("requested_bytes", stats.requested_bytes, numbers);
  add_stat("oversize_allocations", stats.oversize_allocations, numbers);
  add_stat("oversize_segments", stats.oversize_segments, numbers);
  numbers["num_alloc_retries"] = stats.num_alloc_retries;
  numbers["num_ooms"] = stats.num_ooms;
  numbers["num_oom_rejections"] = stats.num_oom_rejections;
  numbers["num_device_alloc"] = stats.num_device_alloc;
  numbers["num_device_free"] = stats.num_device_free;
  numbers["max_split_size"] = settings.max_split_size_bytes == kUnlimitedBytes ? -1 : settings.max_split_size_bytes;
  return numbers;
}

}  // namespace

Result<StatsComparison> compare_stats_text(const std::string& text, const std::string& name, const Stats& stats,
                                           const AllocatorSettings& settings) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    return Error{.code = "stats-not-json",
                 .what = "not a JSON object",
                 .where = name,
                 .hint = "write it with json.dump(torch.cuda.memory_stats(), file)"};
  }
  const nlohmann::json* recorded = &parsed;
  for (const char* key : {"stats", "memory_stats"}) {
    const auto inner = parsed.find(key);
    if (inner != parsed.end() && inner->is_object()) recorded = &*inner;
  }
  StatsComparison comparison;
  for (const auto& [key, model] : numbers_of(stats, settings)) {
    const auto value = recorded->find(key);
    if (value == recorded->end() || !value->is_number_integer()) continue;
    ++comparison.total;
    if (value->get<int64_t>() == model) {
      ++comparison.equal;
    } else {
      comparison.differences.push_back({.name = key, .recorded = value->get<int64_t>(), .model = model});
    }
  }
  if (comparison.total > 0) return comparison;
  return Error{.code = "stats-empty",
               .what = "holds no number of torch.cuda.memory_stats()",
               .where = name,
               .hint = "write it with json.dump(torch.cuda.memory_stats(), file)"};
}

Result<StatsComparison> compare_stats_file(const std::string& path, const Stats& stats,
                                           const AllocatorSettings& settings) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    return Error{.code = "file-unreadable", .what = "cannot be read", .where = path, .hint = ""};
  }
  return compare_stats_text(text, path, stats, settings);
}

}  // namespace oomscope
