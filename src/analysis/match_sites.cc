// Note [Matching lines]
//
// Between two runs people edit their code, so the same line has another number, and compiled code lies in files that
// are named by a hash of themselves. Numbers and paths alone would show every line below an edit as gone and new.
//
// So lines are matched inside the same function of the same file (both normalised, see sites.h). If several files have
// that name, those whose folders agree furthest are paired, else in the order in which they first allocate. Inside one
// function lines keep their order, and an alignment finds the pairs that agree best in what they call:
//
//   A   88 self.attn(x)     91 self.mlp(x)                B   88 x = self.norm(x)   90 self.attn(x)   93 self.mlp(x)
//   88 -> 90 and 91 -> 93 moved, 88 of B is new
//
// A pair that agrees in nothing still counts a little: a line that was rewritten stands where its old self stood.
//
// Cost: lines of A times lines of B of each function, which have few. What that may cost in all is limited to so many
// comparisons a line of the recordings, so that it is linear in them; beyond (generated code: thousands of lines of one
// function, hundreds of files of one name) lines are paired in order.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/diff.h"

namespace oomscope {
namespace {

using Sites = std::vector<const LiveSite*>;

// Comparisons that one diff may make.
class Budget {
 public:
  explicit Budget(size_t sites) : left_(sites * kComparisonsOfSite) {}
  [[nodiscard]] bool take(size_t comparisons) {
    if (comparisons > left_) return false;
    left_ -= comparisons;
    return true;
  }

 private:
  static constexpr size_t kComparisonsOfSite = 4096;
  size_t left_;
};

// Do they call anything in common? Both ascending.
bool share_callees(const LiveSite& a, const LiveSite& b) {
  for (size_t i = 0, j = 0; i < a.callees.size() && j < b.callees.size();) {
    if (a.callees[i] == b.callees[j]) return true;
    (a.callees[i] < b.callees[j] ? i : j) += 1;
  }
  return false;
}

int agreement(const LiveSite& a, const LiveSite& b) {
  int score = 1;
  if (share_callees(a, b)) score += 4;
  if (a.bytes == b.bytes) score += 2;
  if (a.line == b.line) score += 1;
  return score;
}

// Indices of pairs, ascending on both sides: the alignment with the largest sum of agreements.
std::vector<std::pair<size_t, size_t>> align(const Sites& a, const Sites& b, Budget& budget) {
  const auto callees = [](const Sites& sites) {
    size_t count = 0;
    for (const LiveSite* site : sites) count += 1 + site->callees.size();
    return count;
  };
  std::vector<std::pair<size_t, size_t>> pairs;
  if (!budget.take(callees(a) * b.size() + callees(b) * a.size())) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) pairs.emplace_back(i, i);
    return pairs;
  }
  const size_t width = b.size() + 1;
  std::vector<int> best((a.size() + 1) * width, 0);  // of a[i..] and b[j..]
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      best[i * width + j] = std::max({best[(i + 1) * width + j + 1] + agreement(*a[i], *b[j]),
                                      best[(i + 1) * width + j], best[i * width + j + 1]});
    }
  }
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int here = best[i * width + j];
    if (here == best[(i + 1) * width + j + 1] + agreement(*a[i], *b[j])) {
      pairs.emplace_back(i++, j++);
    } else if (here == best[(i + 1) * width + j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

// How many characters at the end do two paths share, cut to whole folders?
size_t common_folders(std::string_view a, std::string_view b) {
  const auto [left, right] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  const std::string_view common = a.substr(static_cast<size_t>(left.base() - a.begin()));
  const auto is_slash = [](char c) { return c == '/' || c == '\\'; };
  const bool ends_there = (left == a.rend() || is_slash(*left)) && (right == b.rend() || is_slash(*right));
  if (ends_there) return common.size();
  const size_t slash = common.find_first_of("/\\");
  return slash == std::string_view::npos ? 0 : common.size() - slash;
}

DiffRow row_of(const LiveSite* a, const LiveSite* b) {
  DiffRow row;
  row.site = site_text(b != nullptr ? *b : *a);
  row.user_code = (b != nullptr ? b : a)->user_code;
  if (a != nullptr) {
    row.line_a = a->line;
    row.bytes_a = a->bytes;
    row.count_a = a->count;
  }
  if (b != nullptr) {
    row.line_b = b->line;
    row.bytes_b = b->bytes;
    row.count_b = b->count;
  }
  if (!row.moved()) return row;
  const std::string before = ":" + std::to_string(row.line_b) + " ";
  const size_t at = row.site.find(before);
  if (at != std::string::npos) row.site.insert(at + 1, std::to_string(row.line_a) + "->");
  return row;
}

// The lines of one function in one file of each side.
void match_lines(Sites a, Sites b, Budget& budget, std::vector<DiffRow>& rows) {
  const auto by_line = [](const LiveSite* left, const LiveSite* right) { return left->line < right->line; };
  std::sort(a.begin(), a.end(), by_line);
  std::sort(b.begin(), b.end(), by_line);
  std::vector<bool> b_done(b.size(), false);
  std::vector<bool> a_done(a.size(), false);
  for (const auto& [i, j] : align(a, b, budget)) {
    rows.push_back(row_of(a[i], b[j]));
    a_done[i] = b_done[j] = true;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a_done[i]) rows.push_back(row_of(a[i], nullptr));
  }
  for (size_t j = 0; j < b.size(); ++j) {
    if (!b_done[j]) rows.push_back(row_of(nullptr, b[j]));
  }
}

struct File {
  std::string path;
  uint32_t first_event = 0xffffffff;
  Sites sites;
};

// In the order in which they first allocate.
std::vector<File> files_of(const Sites& sites) {
  std::map<std::string, File> by_path;
  for (const LiveSite* site : sites) {
    File& file = by_path[site->file];
    file.path = site->file;
    file.first_event = std::min(file.first_event, site->first_event);
    file.sites.push_back(site);
  }
  std::vector<File> files;
  for (auto& [path, file] : by_path) files.push_back(std::move(file));
  std::stable_sort(files.begin(), files.end(),
                   [](const File& a, const File& b) { return a.first_event < b.first_event; });
  return files;
}

// Files of one name, and in them one function.
void match_files(const Sites& a, const Sites& b, Budget& budget, std::vector<DiffRow>& rows) {
  const std::vector<File> left = files_of(a);
  const std::vector<File> right = files_of(b);
  const bool in_order = !budget.take(left.size() * right.size());
  std::vector<bool> is_taken(right.size(), false);
  size_t next = 0;  // the first that is not taken
  for (const File& file : left) {
    while (next < right.size() && is_taken[next]) ++next;
    size_t best = next;
    size_t most = 0;
    for (size_t other = next; other < right.size() && !in_order; ++other) {
      const size_t common = is_taken[other] ? 0 : common_folders(file.path, right[other].path);
      if (common > most) best = other;
      most = std::max(most, common);
    }
    match_lines(file.sites, best == right.size() ? Sites() : right[best].sites, budget, rows);
    if (best != right.size()) is_taken[best] = true;
  }
  for (size_t other = 0; other < right.size(); ++other) {
    if (!is_taken[other]) match_lines({}, right[other].sites, budget, rows);
  }
}

}  // namespace

std::vector<DiffRow> match_sites(const std::vector<LiveSite>& a, const std::vector<LiveSite>& b) {
  std::map<std::pair<std::string, std::string>, std::pair<Sites, Sites>> by_function;
  for (const LiveSite& site : a) {
    by_function[{normal_file(site.file), normal_function(site.function)}].first.push_back(&site);
  }
  for (const LiveSite& site : b) {
    by_function[{normal_file(site.file), normal_function(site.function)}].second.push_back(&site);
  }
  std::vector<DiffRow> rows;
  Budget budget(a.size() + b.size());
  for (const auto& [key, sites] : by_function) match_files(sites.first, sites.second, budget, rows);
  std::sort(rows.begin(), rows.end(), [](const DiffRow& left, const DiffRow& right) {
    return std::tuple(!left.user_code, -std::abs(left.delta()), left.site, left.line_a) <
           std::tuple(!right.user_code, -std::abs(right.delta()), right.site, right.line_a);
  });
  return rows;
}

}  // namespace oomscope
