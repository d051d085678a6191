// The store of baselines: one SQLite file under the user's data folder, which this program alone writes.
//
// A baseline is the text of peaks.json as it was saved, by project and name. Saving again adds a row; the newest of a
// name counts. docs/formats/baseline.md has the table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace oomscope {

struct StoredBaseline {
  std::string project;
  std::string name;
  std::string configuration;
  int64_t saved_at_s = 0;
  std::string peaks_json;
};

class BaselineStore {
 public:
  // Makes the file, and the folders above it, where `may_create`. Errors: store-unreadable; store-missing without
  // `may_create`.
  [[nodiscard]] static Result<BaselineStore> open(const std::string& path, bool may_create);

  [[nodiscard]] Result<Done> save(const StoredBaseline& baseline);
  // The newest of each name, newest first; of one project, or with an empty text of all.
  [[nodiscard]] Result<std::vector<StoredBaseline>> list(const std::string& project);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit BaselineStore(sqlite3* database) : database_(database) {}
  [[nodiscard]] Error error(const char* doing) const;

  std::unique_ptr<sqlite3, Close> database_;
  std::string path_;
};

}  // namespace oomscope
