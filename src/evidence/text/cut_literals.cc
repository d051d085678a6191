#include "evidence/text/cut_literals.h"

#include <algorithm>

#include "evidence/text/squeeze.h"

namespace oomscope {
namespace {

constexpr size_t kBlock = CutLiterals::kBlock;

bool is_blank(char c) { return CutLiterals::is_blank(c); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equals_without_case(std::string_view text, std::string_view literal) {
  return std::equal(text.begin(), text.end(), literal.begin(), literal.end(),
                    [](char a, char b) { return lower(a) == b; });
}

std::string_view without_blanks_at_front(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_blank(text[at])) ++at;
  return text.substr(at);
}

// Where the line's text ends that the break at `at` ends.
size_t end_of_line(std::string_view text, size_t at) {
  while (at > 0 && is_blank(text[at - 1])) --at;
  return at;
}

// A line may begin with what a logger, a launcher or a terminal puts there.
bool may_have_prefix(char first) {
  return (first >= '0' && first <= '9') || std::string_view("[(>|\x1B\xE2\xC2").find(first) != std::string_view::npos ||
         std::string_view("DIWECF").find(first) != std::string_view::npos;
}

// A cheap look, behind a prefix of whatever form.
bool holds(std::string_view line, std::string_view start) {
  constexpr size_t kLongestPrefix = 160;
  const std::string_view near = line.substr(0, std::min(line.find('\n'), kLongestPrefix));
  for (size_t at = 0; at + start.size() <= near.size(); ++at) {
    if (equals_without_case(near.substr(at, start.size()), start)) return true;
  }
  return false;
}

// Whether the lines behind a break go on with the rest of a literal, blanks and prefixes aside.
bool goes_on(std::string_view behind, std::string_view rest, int64_t& budget) {
  constexpr size_t kMostBehind = 240;
  const std::string_view head = without_blanks_at_front(behind);
  const std::string_view wanted = without_blanks_at_front(rest);
  if (head.empty() || wanted.empty()) return false;
  const std::string_view start = wanted.substr(0, kBlock);
  const bool begins_so = equals_without_case(head.substr(0, start.size()), start);
  if (!begins_so && !(may_have_prefix(head.front()) && holds(head, start))) return false;
  --budget;
  std::string squeezed(wanted);
  squeezed.erase(std::remove(squeezed.begin(), squeezed.end(), ' '), squeezed.end());
  const CleanText clean = clean_text(behind.substr(0, kMostBehind));
  return equals_without_case(std::string_view(clean.squeezed).substr(0, squeezed.size()), squeezed);
}

}  // namespace

void CutLiterals::Table::add(std::string_view block, Cut cut) {
  const size_t index = block_index(block.data());
  any.set(index);
  cuts[index].push_back(cut);
}

CutLiterals::CutLiterals(const std::vector<std::string>& literals) : literals_(literals) {
  for (size_t id = 0; id < literals.size(); ++id) {
    const std::string_view literal = literals[id];
    longest_ = std::max(longest_, literal.size());
    for (size_t length = 1; length < literal.size(); ++length) {
      if (literal[length - 1] == ' ') continue;  // as without that blank
      const Cut cut{.literal = static_cast<uint16_t>(id), .length = static_cast<uint16_t>(length)};
      const std::string_view rest = without_blanks_at_front(literal.substr(length));
      if (length >= kBlock) {
        const std::string_view block = literal.substr(length - kBlock, kBlock);
        before_.add(block, cut);
        if (rest.size() < kBlock) before_.any_short.set(block_index(block.data()));
        continue;
      }
      if (length + 1 == kBlock) before_.add(" " + std::string(literal.substr(0, length)), cut);  // a word of its own
      if (rest.size() >= kBlock) behind_.add(rest.substr(0, kBlock), cut);
    }
  }
}

std::vector<TriggerScan::Hit> CutLiterals::at(std::string_view text, size_t line_break, int64_t& budget) const {
  std::vector<TriggerScan::Hit> hits;
  const size_t end = end_of_line(text, line_break);
  const std::string_view before = text.substr(0, end);
  const std::string_view behind = text.substr(line_break + 1);
  const auto look = [&](const Table& table, std::string_view block) {
    const size_t index = block_index(block.data());
    if (!is_of_one_line(block.data()) || !table.any.test(index)) return;
    for (const Cut& cut : table.cuts.at(index)) {
      const std::string_view literal = literals_[cut.literal];
      if (before.size() < cut.length || budget <= 0) continue;
      if (!equals_without_case(before.substr(end - cut.length), literal.substr(0, cut.length))) continue;
      if (goes_on(behind, literal.substr(cut.length), budget)) hits.push_back({end - cut.length, cut.literal});
    }
  };
  if (before.empty() || before.back() == '\n') return hits;
  if (before.size() >= kBlock) look(before_, before.substr(end - kBlock));
  const std::string_view head = without_blanks_at_front(behind.substr(0, 64)).substr(0, kBlock);
  if (head.size() == kBlock && head.find('\n') == std::string_view::npos) look(behind_, head);
  const auto is_same = [](const TriggerScan::Hit& a, const TriggerScan::Hit& b) {
    return a.at == b.at && a.literal == b.literal;
  };
  std::stable_sort(hits.begin(), hits.end(),
                   [](const TriggerScan::Hit& a, const TriggerScan::Hit& b) { return a.at < b.at; });
  hits.erase(std::unique(hits.begin(), hits.end(), is_same), hits.end());
  return hits;
}

}  // namespace oomscope
