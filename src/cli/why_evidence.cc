#include "cli/why_evidence.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "cli/load_snapshot.h"
#include "evidence/evidence_file.h"
#include "evidence/rank_files.h"
#include "evidence/text/text_reader.h"

namespace oomscope {
namespace {

bool ends_like_a_log(std::string_view path) {
  for (std::string_view ending : {".log", ".txt", ".out", ".err"}) {
    if (path.ends_with(ending) || path.ends_with(std::string(ending) + ".gz") ||
        path.ends_with(std::string(ending) + ".zst"))
      return true;
  }
  return false;
}

bool is_typed_message(const std::string& word) {
  const bool has_blank = word.find_first_of(" \n") != std::string::npos;
  const bool looks_like_file = ends_like_a_log(word) || is_snapshot_name(word);
  return has_blank && !looks_like_file && access(word.c_str(), F_OK) != 0 && looks_like_message(word);
}

Error standard_input_error(const char* what) {
  return Error{.code = "bad-usage", .what = what, .where = "standard input", .hint = "name the files instead"};
}

// The logs that lie in a folder, by name; empty where snapshots lie there, which come first.
std::vector<std::string> logs_of_folder(const std::string& folder) {
  constexpr size_t kMostLogs = 1024;
  std::vector<std::string> logs;
  if (find_rank_files(folder)) return logs;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    const std::string path = entry->path().string();
    if (ends_like_a_log(path) && entry->is_regular_file(unknown) && logs.size() < kMostLogs) logs.push_back(path);
  }
  std::sort(logs.begin(), logs.end(), natural_less);
  return logs;
}

Result<Done> take_piped(GivenEvidence& given) {
  if (isatty(STDIN_FILENO) == 1) std::fputs("Paste the log or the error line, then press Ctrl-D.\n", stderr);
  Result<EvidenceFile> file = read_evidence_file("/dev/stdin", "standard input");
  if (!file) return at_its_name(std::move(file.error()), "-");
  if (TextEvidence* text = std::get_if<TextEvidence>(&*file)) {
    given.logs.push_back(std::move(*text));
  } else {
    given.piped = with_all_traces(std::move(std::get<Snapshot>(*file)));
  }
  return Done{};
}

Result<Done> take_log(const std::string& path, GivenEvidence& given) {
  OOM_TRY(EvidenceFile file, read_evidence_file(path, path));
  if (TextEvidence* text = std::get_if<TextEvidence>(&file)) given.logs.push_back(std::move(*text));
  return Done{};
}

// A folder of logs in which nothing is said of memory is a folder without snapshots.
Result<Done> take_folder(const std::string& folder, GivenEvidence& given) {
  GivenEvidence inside;
  for (const std::string& log : logs_of_folder(folder)) {
    OOM_TRY([[maybe_unused]] const Done done, take_log(log, inside));
  }
  const bool tells = std::any_of(inside.logs.begin(), inside.logs.end(), [](const TextEvidence& log) {
    return !log.messages.empty() || !log.summaries.empty();
  });
  if (!tells) {
    given.snapshots.push_back(folder);
    return Done{};
  }
  for (TextEvidence& log : inside.logs) given.logs.push_back(std::move(log));
  return Done{};
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

Result<GivenEvidence> sort_evidence(const std::vector<std::string>& words) {
  GivenEvidence given;
  if (std::count(words.begin(), words.end(), "-") > 1) return standard_input_error("can be read once");
  for (const std::string& word : words) {
    if (is_typed_message(word)) {
      given.logs.push_back(read_text(word, "argument"));
    } else if (word == "-") {
      OOM_TRY([[maybe_unused]] const Done done, take_piped(given));
    } else if (is_folder(word)) {
      OOM_TRY([[maybe_unused]] const Done done, take_folder(word, given));
    } else {
      OOM_TRY(const bool is_text, is_text_file(word));
      if (!is_text) {
        given.snapshots.push_back(word);
        continue;
      }
      OOM_TRY([[maybe_unused]] const Done done, take_log(word, given));
    }
  }
  if (given.piped && !given.snapshots.empty()) return standard_input_error("holds a snapshot, which stands alone");
  return given;
}

}  // namespace oomscope
