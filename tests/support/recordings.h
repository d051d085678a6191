// Recordings for tests: the small ones of tests/data/recordings, which every checkout has, and the large collection
// that OOMSCOPE_DATA names (default: ../shared/data beside the repository).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evidence/snapshot_reader.h"

namespace oomscope {

struct Recording {
  std::string name;  // folder/file below its collection, without the endings
  std::filesystem::path path;
  nlohmann::json result;  // result.json beside it; null if there is none
  bool is_final = false;  // taken at the end of the run, as the statistics of result.json were
  [[nodiscard]] std::string conf() const { return result.is_null() ? "" : result.value("conf", ""); }
  [[nodiscard]] std::optional<int64_t> cap_bytes() const {
    const double mib = result.is_null() ? 0.0 : result.value("cap_mib", 0.0);
    if (mib == 0.0) return std::nullopt;
    return static_cast<int64_t>(mib * 1048576.0);
  }
};

inline std::filesystem::path small_recordings() { return std::filesystem::path(OOMSCOPE_TEST_DATA) / "recordings"; }

inline std::filesystem::path large_recordings() {
  const char* given = std::getenv("OOMSCOPE_DATA");
  return given != nullptr ? std::filesystem::path(given) : std::filesystem::path(OOMSCOPE_DEFAULT_DATA);
}

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return nullptr;
  return nlohmann::json::parse(file, nullptr, false);
}

// All snapshots below `root`, by name.
inline std::vector<Recording> recordings_below(const std::filesystem::path& root) {
  std::vector<Recording> found;
  std::error_code missing;
  for (auto entry = std::filesystem::recursive_directory_iterator(root, missing);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const std::filesystem::path path = entry->path();
    const std::string file = path.filename().string();
    const size_t ending = file.find(".pickle");
    if (ending == std::string::npos) continue;
    const std::string folder = std::filesystem::relative(path.parent_path(), root).string();
    found.push_back(Recording{.name = (folder == "." ? "" : folder + "/") + file.substr(0, ending),
                              .path = path,
                              .result = read_json(path.parent_path() / "result.json"),
                              .is_final = file.substr(0, ending) == "snapshot"});
  }
  std::sort(found.begin(), found.end(), [](const Recording& a, const Recording& b) { return a.name < b.name; });
  return found;
}

// nullptr, and a failure of the test, if it cannot be read.
inline std::unique_ptr<Snapshot> read_recording(const std::filesystem::path& path) {
  Result<Snapshot> snapshot = read_snapshot_file(path.string());
  if (!snapshot) {
    ADD_FAILURE() << path << ": " << snapshot.error().code << ": " << snapshot.error().what;
    return nullptr;
  }
  return std::make_unique<Snapshot>(*std::move(snapshot));
}

}  // namespace oomscope
