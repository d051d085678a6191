#include "evidence/peaks_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPhases = 1000;  // beyond: left out

Error incomplete(const char* what, const std::string& name, Values values = {}) {
  return Error{
      .code = "peaks-incomplete", .what = what, .where = name, .hint = "error.peaks.hint", .values = std::move(values)};
}

// A size: an integer that is not negative.
bool read_bytes(const Json& object, const char* key, int64_t& bytes) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  bytes = found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)
              ? -1
              : found->get<int64_t>();
  return bytes >= 0;
}

bool read_peak(const Json& object, PhasePeak& peak) {
  return object.is_object() && read_bytes(object, "allocated", peak.allocated_bytes) &&
         read_bytes(object, "reserved", peak.reserved_bytes);
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// The members of an object, in the order of the file.
void add_environment(const Json& file, const char* key, const std::string& prefix, Peaks& peaks) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) {
    if (!value.is_null()) peaks.environment.emplace_back(prefix + name, text_of(value));
  }
}

void take_most(const PhasePeak& peak, Peaks& peaks) {
  const auto known = std::find_if(peaks.phases.begin(), peaks.phases.end(),
                                  [&](const PhasePeak& each) { return each.name == peak.name; });
  if (known == peaks.phases.end()) {
    if (peaks.phases.size() < kMostPhases) peaks.phases.push_back(peak);
    return;
  }
  known->allocated_bytes = std::max(known->allocated_bytes, peak.allocated_bytes);
  known->reserved_bytes = std::max(known->reserved_bytes, peak.reserved_bytes);
}

Result<Done> read_steps(const Json& file, const std::string& name, Peaks& peaks) {
  const auto steps = file.find("steps");
  if (steps == file.end() || !steps->is_array()) return incomplete("error.peaks.no-steps", name);
  for (const Json& step : *steps) {
    const auto phases = step.is_object() ? step.find("phases") : step.end();
    if (phases == step.end() || !phases->is_object()) continue;
    for (const auto& [phase, value] : phases->items()) {
      PhasePeak peak{.name = phase};
      if (!read_peak(value, peak)) return incomplete("error.peaks.no-sizes", name, {{"phase", phase}});
      take_most(peak, peaks);
    }
  }
  peaks.steps = static_cast<int64_t>(steps->size());
  return Done{};
}

std::string command_of(const Json& file) {
  const auto found = file.find("command");
  if (found == file.end()) return "";
  if (!found->is_array()) return text_of(*found);
  std::string text;
  for (const Json& word : *found) text += (text.empty() ? "" : " ") + text_of(word);
  return text;
}

}  // namespace

Result<Peaks> read_peaks(std::string_view text, const std::string& name) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object()) {
    return Error{.code = "peaks-not-json", .what = "error.peaks-not-json", .where = name, .hint = "error.peaks.hint"};
  }
  Peaks peaks{.name = "", .command = command_of(file), .environment = {}, .all = {.name = "all"}, .phases = {}};
  const auto run = file.find("name");
  if (run != file.end() && run->is_string()) peaks.name = run->get<std::string>();
  const auto peak = file.find("peak");
  if (peak == file.end() || !read_peak(*peak, peaks.all)) return incomplete("error.peaks.no-peak", name);
  OOM_TRY([[maybe_unused]] const Done steps, read_steps(file, name, peaks));
  add_environment(file, "versions", "", peaks);
  add_environment(file, "device", "card ", peaks);
  add_environment(file, "settings", "", peaks);
  return peaks;
}

}  // namespace oomscope
