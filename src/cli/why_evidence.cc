#include "cli/why_evidence.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
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

// A path has a folder or an ending; a sentence has neither, whatever stands in it.
bool looks_like_path(const std::string& word, const char* marks) {
  if (ends_like_a_log(word) || is_snapshot_name(word)) return true;
  return word.find_first_of(" \n") == std::string::npos && word.find_first_of(marks) != std::string::npos;
}

bool is_there(const std::string& word) { return access(word.c_str(), F_OK) == 0; }

bool is_typed_message(const std::string& word) {
  return !is_there(word) && !looks_like_path(word, "/\\") && looks_like_message(word);
}

Error unknown_words(const std::string& word) {
  return Error{.code = "not-evidence", .what = "error.not-evidence", .where = word, .hint = "error.not-evidence.hint"};
}

Error standard_input_error(const char* what) {
  return Error{.code = "bad-usage", .what = what, .where = "error.standard-input", .hint = "error.standard-input.hint"};
}

// The logs that lie in a folder and a few levels below it (rank0/train.log), by name.
std::vector<std::string> logs_of_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr size_t kMostLogs = 1024;
  constexpr size_t kMostEntries = 65536;
  constexpr int kDeepest = 4;
  std::vector<std::string> logs;
  std::error_code error;
  size_t seen = 0;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator() && ++seen <= kMostEntries; entry.increment(error)) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    std::error_code unknown;
    const std::string path = entry->path().string();
    if (ends_like_a_log(path) && entry->is_regular_file(unknown) && logs.size() < kMostLogs) logs.push_back(path);
  }
  std::sort(logs.begin(), logs.end(), natural_less);
  return logs;
}

Result<Done> take_piped(Language language, GivenEvidence& given) {
  if (isatty(STDIN_FILENO) == 1) std::fputs((say("progress.paste", language) + "\n").c_str(), stderr);
  Result<EvidenceFile> file = read_evidence_file("/dev/stdin", std::string(kStandardInputName));
  if (!file) return at_its_name(std::move(file.error()), "-");
  if (TextEvidence* text = std::get_if<TextEvidence>(&*file)) {
    given.logs.push_back(std::move(*text));
  } else {
    given.piped = with_all_traces(std::move(std::get<Snapshot>(*file)));
  }
  return Done{};
}

// What is named like a log may be a snapshot.
Result<Done> take_log(const std::string& path, GivenEvidence& given) {
  OOM_TRY(EvidenceFile file, read_evidence_file(path, path));
  if (TextEvidence* text = std::get_if<TextEvidence>(&file)) {
    given.logs.push_back(std::move(*text));
  } else {
    given.snapshots.push_back(path);
  }
  return Done{};
}

// A folder of ranks' logs, of their snapshots, or of both. Logs that say nothing of memory are none: a folder with
// nothing else is one without snapshots.
void take_folder(const std::string& folder, GivenEvidence& given) {
  GivenEvidence inside;
  for (const std::string& log : logs_of_folder(folder)) {
    Result<Done> taken = take_log(log, inside);
    if (!taken) inside.unread.push_back({log, std::move(taken.error())});
  }
  const auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  const bool has_snapshots = find_rank_files(folder).has_value();
  const bool tells = std::any_of(inside.logs.begin(), inside.logs.end(), [](const TextEvidence& log) {
    return !log.messages.empty() || !log.summaries.empty();
  });
  if (tells) move_all(inside.logs, given.logs);
  if (has_snapshots || (!tells && inside.snapshots.empty() && inside.unread.empty())) {
    given.snapshots.push_back(folder);
  } else {
    move_all(inside.snapshots, given.snapshots);
  }
  move_all(inside.unread, given.unread);
}

}  // namespace

void add_unread(const std::vector<UnreadFile>& unread, Caveats& caveats) {
  constexpr size_t kMostSaid = 5;
  for (size_t i = 0; i < std::min(unread.size(), kMostSaid); ++i) {
    Values values = {{"path", unread[i].path}, {"error", unread[i].error.what}};
    values.insert(values.end(), unread[i].error.values.begin(), unread[i].error.values.end());
    caveats.push_back(
        Caveat{.code = "rank-unreadable", .values = std::move(values), .source = CaveatSource::recording});
  }
  if (unread.size() <= kMostSaid) return;
  caveats.push_back(Caveat{.code = "more-ranks-unreadable",
                           .values = {{"count", std::to_string(unread.size() - kMostSaid)}},
                           .source = CaveatSource::recording});
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

Result<GivenEvidence> sort_evidence(const std::vector<std::string>& words, Language language) {
  GivenEvidence given;
  if (std::count(words.begin(), words.end(), "-") > 1) return standard_input_error("error.read-once");
  for (const std::string& word : words) {
    if (is_typed_message(word)) {
      given.logs.push_back(read_text(word, std::string(kArgumentName)));
    } else if (word == "-") {
      OOM_TRY([[maybe_unused]] const Done done, take_piped(language, given));
    } else if (is_folder(word)) {
      take_folder(word, given);
    } else {
      if (!is_there(word) && !looks_like_path(word, "./\\")) return unknown_words(word);
      const Result<bool> is_text = is_text_file(word);
      if (!is_text && is_text.error().code == "file-not-found") return is_text.error();
      // What is called a snapshot is read as one: the reader says what it is instead.
      if (is_snapshot_name(word) || (is_text && !*is_text && !ends_like_a_log(word))) {
        given.snapshots.push_back(word);
        continue;
      }
      Result<Done> taken = take_log(word, given);
      if (!taken) given.unread.push_back({word, std::move(taken.error())});
    }
  }
  const bool has_other = given.piped || !given.snapshots.empty() || !given.logs.empty();
  if (!has_other && !given.unread.empty()) return std::move(given.unread.front().error);
  if (given.piped && !given.snapshots.empty()) return standard_input_error("error.stands-alone");
  return given;
}

}  // namespace oomscope
