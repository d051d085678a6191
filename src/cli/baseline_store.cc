#include "cli/baseline_store.h"

#include <sqlite3.h>

#include <filesystem>

namespace oomscope {
namespace {

namespace fs = std::filesystem;

constexpr int kWaitMs = 5000;  // for another process that writes
constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS baseline ("
    " id INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, configuration TEXT NOT NULL,"
    " saved_at INTEGER NOT NULL, peaks TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS baseline_by_name ON baseline (project, name, id);";
constexpr const char* kInsert =
    "INSERT INTO baseline (project, name, configuration, saved_at, peaks) VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr const char* kList =
    "SELECT project, name, configuration, saved_at, peaks FROM baseline"
    " WHERE (?1 = '' OR project = ?1) AND id IN (SELECT max(id) FROM baseline GROUP BY project, name)"
    " ORDER BY id DESC";

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK) return nullptr;
  return Statement(statement);
}

bool bind(sqlite3_stmt* statement, int at, const std::string& text) {
  return sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK;
}

std::string text_at(sqlite3_stmt* statement, int column) {
  const unsigned char* text = sqlite3_column_text(statement, column);
  const int size = sqlite3_column_bytes(statement, column);
  return text == nullptr ? "" : std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
}

}  // namespace

void BaselineStore::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Error BaselineStore::error(const char* doing) const {
  return Error{.code = "store-unreadable",
               .what = std::string(doing) + ": " + sqlite3_errmsg(database_.get()),
               .where = path_,
               .hint = "another file: --store FILE"};
}

Result<BaselineStore> BaselineStore::open(const std::string& path, bool may_create) {
  std::error_code failed;
  if (!may_create && !fs::exists(path, failed)) {
    return Error{.code = "store-missing",
                 .what = "no baseline is saved yet",
                 .where = path,
                 .hint = "oomscope baseline save peaks.json"};
  }
  const fs::path folder = fs::path(path).parent_path();
  if (may_create && !folder.empty()) fs::create_directories(folder, failed);
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | (may_create ? SQLITE_OPEN_CREATE : 0);
  const int opened = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  BaselineStore store(database);
  store.path_ = path;
  if (opened != SQLITE_OK) return store.error("cannot be opened");
  sqlite3_busy_timeout(database, kWaitMs);
  if (sqlite3_exec(database, kTable, nullptr, nullptr, nullptr) != SQLITE_OK) return store.error("is no store");
  return store;
}

Result<Done> BaselineStore::save(const StoredBaseline& baseline) {
  const Statement statement = prepare(database_.get(), kInsert);
  if (statement == nullptr) return error("cannot be written");
  const bool bound = bind(statement.get(), 1, baseline.project) && bind(statement.get(), 2, baseline.name) &&
                     bind(statement.get(), 3, baseline.configuration) &&
                     sqlite3_bind_int64(statement.get(), 4, baseline.saved_at_s) == SQLITE_OK &&
                     bind(statement.get(), 5, baseline.peaks_json);
  if (!bound || sqlite3_step(statement.get()) != SQLITE_DONE) return error("cannot be written");
  return Done{};
}

Result<std::vector<StoredBaseline>> BaselineStore::list(const std::string& project) {
  const Statement statement = prepare(database_.get(), kList);
  if (statement == nullptr || !bind(statement.get(), 1, project)) return error("cannot be read");
  std::vector<StoredBaseline> found;
  int state = SQLITE_ROW;
  while ((state = sqlite3_step(statement.get())) == SQLITE_ROW) {
    found.push_back({.project = text_at(statement.get(), 0),
                     .name = text_at(statement.get(), 1),
                     .configuration = text_at(statement.get(), 2),
                     .saved_at_s = sqlite3_column_int64(statement.get(), 3),
                     .peaks_json = text_at(statement.get(), 4)});
  }
  if (state != SQLITE_DONE) return error("cannot be read");
  return found;
}

}  // namespace oomscope
