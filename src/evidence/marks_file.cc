#include "evidence/marks_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "evidence/json_fields.h"
#include "evidence/small_file.h"

namespace oomscope {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "oomscope.marks/";

bool has_own_marks(const Snapshot& snapshot) {
  return std::any_of(snapshot.annotations.begin(), snapshot.annotations.end(), [&](const Annotation& annotation) {
    return snapshot.strings.text(annotation.name).starts_with("oomscope.");
  });
}

}  // namespace

bool add_marks(std::string_view text, Snapshot& snapshot) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || !text_at(file, "schema").starts_with(kSchema)) return false;
  const auto marks = file.find("marks");
  if (marks == file.end() || !marks->is_array()) return false;
  std::vector<Annotation> added;
  for (const Json& mark : *marks) {
    if (!mark.is_object()) return false;
    const std::string name = text_at(mark, "name");
    const std::string stage = text_at(mark, "stage");
    const auto time = mark.find("time_us");
    const bool timed = time != mark.end() && time->is_number_integer() && time->get<int64_t>() >= 0;
    if (name.empty() || !timed || (stage != "START" && stage != "END")) return false;
    added.push_back({.name = snapshot.strings.intern(name),
                     .is_start = stage == "START",
                     .device = Annotation::kAllDevices,
                     .time_us = time->get<int64_t>()});
  }
  std::stable_sort(added.begin(), added.end(),
                   [](const Annotation& a, const Annotation& b) { return a.time_us < b.time_us; });
  snapshot.annotations.insert(snapshot.annotations.end(), added.begin(), added.end());
  return true;
}

void add_marks_beside(const std::string& snapshot_path, Snapshot& snapshot) {
  if (has_own_marks(snapshot)) return;
  const std::string path = snapshot_path + ".marks.json";
  const Result<std::string> text = read_small_file(path, "");
  if (!text && text.error().code == "file-not-found") return;
  if (text && add_marks(*text, snapshot)) return;
  snapshot.caveats.push_back(
      Caveat{.code = "marks-unusable", .values = {{"file", path}}, .source = CaveatSource::recording});
}

}  // namespace oomscope
