#include "evidence/modules_beside.h"

#include <nlohmann/json.hpp>

#include "evidence/small_file.h"
#include "types/limits.h"

namespace oomscope {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostModules = 100'000;
constexpr size_t kMostExtents = 64;  // dimensions of a tensor, as torch allows

// [[8, 12], "float32"] -> "(8, 12) float32".
std::string shape_text(const Json& largest) {
  if (!largest.is_array() || largest.size() != 2 || !largest[0].is_array() || !largest[1].is_string()) return "";
  if (largest[0].size() > kMostExtents) return "";
  std::string text = "(";
  for (const Json& extent : largest[0]) {
    if (!extent.is_number_integer()) return "";
    text += (text.size() > 1 ? ", " : "") + extent.dump();
  }
  return text + ") " + largest[1].get<std::string>();
}

}  // namespace

std::vector<ModuleUse> read_modules(std::string_view text) {
  const Json file = Json::parse(text, nullptr, false);
  std::vector<ModuleUse> modules;
  if (!file.is_object()) return modules;
  const auto rows = file.find("modules");
  if (rows == file.end() || !rows->is_array() || rows->size() > kMostModules) return modules;
  for (const Json& row : *rows) {
    const auto name = row.is_object() ? row.find("name") : row.end();
    if (name == row.end() || !name->is_string()) continue;
    const auto kept = row.find("kept_bytes");
    if (kept == row.end() || !kept->is_number_integer() || kept->get<int64_t>() <= 0) continue;
    if (kept->get<int64_t>() > kMaxSizeBytes) continue;
    const auto largest = row.find("largest");
    modules.push_back({.name = name->get<std::string>(),
                       .kept_bytes = kept->get<int64_t>(),
                       .largest = largest == row.end() ? "" : shape_text(*largest)});
  }
  return modules;
}

std::vector<ModuleUse> modules_beside(const std::string& snapshot_path) {
  const Result<std::string> text = read_small_file(snapshot_path + ".marks.json", "");
  return text ? read_modules(*text) : std::vector<ModuleUse>{};
}

}  // namespace oomscope
