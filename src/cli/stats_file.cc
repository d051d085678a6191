#include "cli/stats_file.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "caching/stats_names.h"
#include "evidence/small_file.h"

namespace oomscope {
namespace {

// PyTorch counts it in places that leave no trace (docs/fidelity.md).
constexpr std::string_view kNotReconstructed = "num_sync_all_streams";

}  // namespace

Result<StatsComparison> compare_stats_text(const std::string& text, const std::string& name, const Stats& stats,
                                           const AllocatorSettings& settings) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    return Error{.code = "stats-not-json", .what = "error.stats-not-json", .where = name, .hint = "error.stats.hint"};
  }
  const nlohmann::json* recorded = &parsed;
  for (const char* key : {"stats", "memory_stats"}) {
    const auto inner = parsed.find(key);
    if (inner != parsed.end() && inner->is_object()) recorded = &*inner;
  }
  StatsComparison comparison;
  for (const auto& [key, model] : flat_stats(stats, settings)) {
    if (key == kNotReconstructed) continue;
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
  return Error{.code = "stats-empty", .what = "error.stats-empty", .where = name, .hint = "error.stats.hint"};
}

Result<StatsComparison> compare_stats_file(const std::string& path, const Stats& stats,
                                           const AllocatorSettings& settings) {
  OOM_TRY(const std::string text, read_small_file(path, "error.stats.hint"));
  return compare_stats_text(text, path, stats, settings);
}

}  // namespace oomscope
