#include "evidence/rank_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/system_error.h"
#include "base/text.h"

namespace oomscope {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 6;           // levels of folders below the one that was named
constexpr size_t kMostFiles = 65536;  // entries looked at: beyond any job
constexpr std::array<std::string_view, 4> kFailureWords = {"oom", "exit", "crash", "fail"};

// The name without the endings of a packed snapshot.
std::string_view stem_of(std::string_view name) {
  constexpr std::array<std::string_view, 6> kEndings = {".gz", ".zst", ".xz", ".pickle", ".pkl", ".snapshot"};
  for (bool cut = true; cut;) {
    cut = false;
    for (std::string_view ending : kEndings) {
      if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
      name.remove_suffix(ending.size());
      cut = true;
    }
  }
  return name;
}

// A number of at most six digits at `at`; ranks are no time stamps.
std::optional<int64_t> number_at(std::string_view text, size_t at) {
  int64_t number = 0;
  const std::from_chars_result read = std::from_chars(text.data() + at, text.data() + text.size(), number);
  const size_t digits = static_cast<size_t>(read.ptr - (text.data() + at));
  if (read.ec != std::errc{} || digits == 0 || digits > 6 || text[at] == '-') return std::nullopt;
  return number;
}

// "rank3", "rank_3", "rank-03", "rank=3": the number behind the last such word. A word that is the end of a longer one
// ("frank3") does not count.
std::optional<int64_t> number_behind(std::string_view text, std::string_view word) {
  for (size_t at = text.rfind(word); at != std::string_view::npos; at = at == 0 ? at - 1 : text.rfind(word, at - 1)) {
    const bool begins = at == 0 || !is_letter(text[at - 1]);
    size_t number = at + word.size();
    if (number < text.size() && !is_digit(text[number])) ++number;  // one separator
    if (begins && number < text.size() && is_digit(text[number])) {
      if (const std::optional<int64_t> found = number_at(text, number)) return found;
    }
    if (at == 0) break;
  }
  return std::nullopt;
}

// "trace-0", "snapshot_3", "7": the number that ends the name.
std::optional<int64_t> number_at_end(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  if (begin == text.size()) return std::nullopt;
  return number_at(text, begin);
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(path)) parts.push_back(lower(part.string()));
  if (!parts.empty()) parts.back() = std::string(stem_of(parts.back()));
  return parts;
}

std::optional<int64_t> first_number(const std::vector<std::string>& parts, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    for (size_t i = parts.size(); i-- > 0;) {
      if (const std::optional<int64_t> number = number_behind(parts[i], word)) return number;
    }
  }
  return std::nullopt;
}

// Where one of the words of failure begins ("oom_rank3", "crashed", not "bloom"), and how long it is; npos if none
// does.
std::pair<size_t, size_t> failure_word(std::string_view text) {
  for (std::string_view word : kFailureWords) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      if (at == 0 || !is_letter(text[at - 1])) return {at, word.size()};
    }
  }
  return {std::string_view::npos, 0};
}

bool speaks_of_failure(const std::vector<std::string>& parts) {
  const size_t from = parts.size() > 2 ? parts.size() - 2 : 0;  // the file and its folder
  return std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(from), parts.end(),
                     [](const std::string& part) { return failure_word(part).first != std::string::npos; });
}

// A '#' for each number: files of one job become equal.
std::string without_numbers(const std::string& path) {
  std::string text;
  for (size_t i = 0; i < path.size(); ++i) {
    if (!is_digit(path[i])) {
      text += path[i];
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

// How many folders stand above the part of the path that names the rank?
size_t folders_above_rank(const std::vector<std::string>& parts) {
  for (size_t i = parts.size(); i-- > 0;) {
    if (number_behind(parts[i], "rank")) return i;
  }
  return parts.empty() ? 0 : parts.size() - 1;
}

std::string folders_text(const std::string& path) {
  const size_t count = folders_above_rank(parts_of(path));
  fs::path folders;
  const fs::path whole(path);
  fs::path::iterator part = whole.begin();
  for (size_t i = 0; i < count; ++i, ++part) folders /= *part;
  return folders.string();
}

// Those folders without numbers and words of failure: what tells jobs apart.
std::string job_of(const std::string& path) {
  std::string job;
  std::vector<std::string> parts = parts_of(path);
  parts.resize(folders_above_rank(parts));
  for (const std::string& part : parts) {
    std::string text = without_numbers(part);
    if (const auto [at, size] = failure_word(text); at != std::string::npos) text.erase(at, size);
    while (!text.empty() && !is_letter(text.back()) && text.back() != '#') text.pop_back();
    const bool is_only_number = text == "#" || number_behind(part, "node") || number_behind(part, "host");
    if (!text.empty() && !is_only_number) job += (job.empty() ? "" : "/") + text;
  }
  return job;
}

struct ByRank {
  bool operator()(const RankFile& a, const RankFile& b) const {
    if (a.job != b.job) return natural_less(a.job, b.job);
    if (a.node != b.node) return a.node < b.node;
    if (a.rank != b.rank) return a.rank < b.rank;
    return natural_less(a.path, b.path);
  }
};

void leave_aside(RankFiles& result, const char* code, size_t count, const std::string& example) {
  if (count == 0) return;
  result.caveats.push_back(Caveat{.code = code,
                                  .values = {{"count", std::to_string(count)}, {"example", example}},
                                  .source = CaveatSource::recording});
}

// 2024-01-31, 2024_01_31, 20240131 or seconds since 1970: when it was taken, and no rank.
bool tells_a_date(const std::string& name) {
  constexpr size_t kManyDigits = 6;
  size_t digits = 0;
  std::vector<size_t> numbers;  // digits of each
  for (char c : name + '.') {
    if (is_digit(c)) {
      ++digits;
    } else if (digits > 0) {
      numbers.push_back(std::exchange(digits, 0));
    } else if (c != '-' && c != '_') {
      numbers.clear();
    }
    const size_t n = numbers.size();
    if (n >= 3 && numbers[n - 3] == 4 && numbers[n - 2] == 2 && numbers[n - 1] == 2) return true;
    if (n > 0 && numbers.back() >= kManyDigits) return true;
  }
  return false;
}

// The numbers at the ends of names count only if no name says "rank" and all are alike but for them.
void read_end_numbers(std::vector<RankFile>& files) {
  if (files.empty()) return;
  const std::string pattern = without_numbers(files.front().path);
  for (const RankFile& file : files) {
    const std::vector<std::string> parts = parts_of(file.path);
    if (file.rank || without_numbers(file.path) != pattern || (!parts.empty() && tells_a_date(parts.back()))) return;
  }
  for (RankFile& file : files) {
    const std::vector<std::string> parts = parts_of(file.path);
    file.rank = parts.empty() ? std::nullopt : number_at_end(parts.back());
    // 0/snapshot.pickle: the folder is the number.
    if (!file.rank && parts.size() > 1) {
      const std::string& folder = parts[parts.size() - 2];
      if (std::all_of(folder.begin(), folder.end(), is_digit)) file.rank = number_at_end(folder);
    }
  }
}

}  // namespace

bool is_snapshot_name(const std::string& path) {
  const std::string name = lower(fs::path(path).filename().string());
  std::string_view rest = name;
  for (std::string_view packed : {".gz", ".zst", ".xz"}) {
    if (rest.ends_with(packed)) rest.remove_suffix(packed.size());
  }
  return rest.ends_with(".pickle") || rest.ends_with(".pkl");
}

RankFile read_rank_name(const std::string& path) {
  const std::vector<std::string> parts = parts_of(path);
  RankFile file{.path = path,
                .job = job_of(path),
                .node = std::nullopt,
                .rank = std::nullopt,
                .is_oom = speaks_of_failure(parts)};
  file.rank = first_number(parts, {"global_rank", "globalrank", "global-rank"});
  if (!file.rank) {  // a global rank needs no node
    file.rank = first_number(parts, {"rank", "localrank", "worker", "gpu", "device"});
    if (file.rank) file.node = first_number(parts, {"node", "host"});
  }
  file.says_rank = file.rank.has_value();
  return file;
}

LogRank read_log_rank(const std::string& path) {
  constexpr size_t kNearest = 3;  // what stands further above says nothing of ranks
  std::vector<std::string> parts = parts_of(path);
  if (parts.size() > kNearest) parts.erase(parts.begin(), parts.end() - kNearest);
  const auto small = [](std::optional<int64_t> number) {
    constexpr int64_t kMost = 1'000'000;
    return number && *number < kMost ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
  };
  LogRank found{.rank = small(first_number(parts, {"global_rank", "globalrank", "global-rank"})), .node = std::nullopt};
  if (found.rank) return found;
  found.rank = small(first_number(parts, {"rank", "localrank"}));
  if (found.rank) found.node = small(first_number(parts, {"node", "host"}));
  const bool is_of_torchrun = parts.size() == kNearest && parts[0].starts_with("attempt_");
  if (!found.rank && is_of_torchrun && std::all_of(parts[1].begin(), parts[1].end(), is_digit))
    found.rank = small(number_at_end(parts[1]));
  return found;
}

std::vector<std::string> distinct_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(fs::path(path).filename().string());
  const bool all_alike =
      paths.size() > 1 && std::all_of(names.begin(), names.end(), [&](const auto& name) { return name == names[0]; });
  if (all_alike) names.assign(names.size(), "");
  std::vector<fs::path> above(paths.begin(), paths.end());
  constexpr int kMostFolders = 4;
  for (int i = 0; i < kMostFolders && std::set<std::string>(names.begin(), names.end()).size() < names.size(); ++i) {
    for (size_t k = 0; k < names.size(); ++k) {
      above[k] = above[k].parent_path();
      const std::string folder = above[k].filename().string();
      if (!folder.empty()) names[k] = names[k].empty() ? folder : folder + "/" + names[k];
    }
  }
  return names;
}

bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const auto number = [](const std::string& text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return std::string_view(text).substr(begin, at - begin);
    };
    const std::string_view left = number(a, i);
    const std::string_view right = number(b, j);
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // equal but for leading zeros
}

RankFiles choose_rank_files(const std::vector<std::string>& paths) {
  std::vector<RankFile> files;
  for (const std::string& path : paths) files.push_back(read_rank_name(path));
  read_end_numbers(files);
  std::sort(files.begin(), files.end(), ByRank{});
  const bool numbered = std::any_of(files.begin(), files.end(), [](const RankFile& file) { return file.rank; });

  RankFiles result;
  size_t unnumbered = 0;
  size_t older = 0;
  std::string unnumbered_example;
  std::string older_example;
  for (RankFile& file : files) {
    if (numbered && !file.rank && !file.is_oom) {
      unnumbered += 1;
      unnumbered_example = file.path;
      continue;
    }
    RankFile* last = result.files.empty() ? nullptr : &result.files.back();
    if (last == nullptr || !file.rank || last->job != file.job || last->node != file.node || last->rank != file.rank) {
      result.files.push_back(std::move(file));
      continue;
    }
    older += 1;
    if (file.is_oom >= last->is_oom) std::swap(*last, file);  // the failure's, else the last by name
    older_example = file.path;
  }
  leave_aside(result, "files-without-rank", unnumbered, unnumbered_example);
  leave_aside(result, "older-snapshots", older, older_example);
  const bool several = !result.files.empty() && result.files.front().job != result.files.back().job;
  for (RankFile& file : result.files) file.job = several ? folders_text(file.path) : "";
  if (several) {
    result.caveats.push_back(Caveat{.code = "several-jobs",
                                    .values = {{"first", result.files.front().job}, {"last", result.files.back().job}},
                                    .source = CaveatSource::recording});
  }
  return result;
}

Result<RankFiles> find_rank_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  if (error) {
    return Error{
        .code = "file-unreadable", .what = system_error(error.value()), .where = folder, .hint = "ls -ld FOLDER"};
  }
  size_t seen = 0;
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostFiles) {
      return Error{.code = "too-many-files",
                   .what = "error.too-many-files",
                   .where = folder,
                   .hint = "error.too-many-files.hint",
                   .values = {{"count", std::to_string(kMostFiles)}}};
    }
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    std::error_code unknown;
    if (is_snapshot_name(entry->path().string()) && entry->is_regular_file(unknown)) {
      paths.push_back(entry->path().string());
    }
  }
  if (paths.empty()) {
    return Error{
        .code = "no-snapshots", .what = "error.no-snapshots", .where = folder, .hint = "error.no-snapshots.hint"};
  }
  // Names count from the folder on: what stands above it ("/data/gpu7/run") says nothing of ranks.
  std::vector<std::string> below;
  for (const std::string& path : paths) below.push_back(fs::path(path).lexically_relative(folder).string());
  RankFiles result = choose_rank_files(below);
  for (RankFile& file : result.files) file.path = (fs::path(folder) / file.path).string();
  if (error) result.caveats.push_back(Caveat{"folder-cut-short", {{"error", error.message()}}});  // by increment()
  return result;
}

bool look_like_ranks(const std::vector<std::string>& paths) {
  if (paths.size() < 2) return false;
  const std::string pattern = without_numbers(paths.front());
  std::map<std::pair<std::optional<int64_t>, std::optional<int64_t>>, int> seen;
  for (const std::string& path : paths) {
    const RankFile file = read_rank_name(path);
    if (!file.rank || without_numbers(path) != pattern || seen[{file.node, file.rank}]++ > 0) return false;
  }
  return true;
}

}  // namespace oomscope
