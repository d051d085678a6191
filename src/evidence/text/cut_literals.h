// Finds literals that a line break cuts in two or more: "CUDA out of mem\nory". Terminals, mail and people wrap a
// message anywhere, and TriggerScan sees whole literals only.
//
// A table tells for the three letters before a break which literals may begin there, so that most breaks cost two
// looks. Where fewer than three letters stand before it, those behind it are asked.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "evidence/text/trigger_scan.h"

namespace oomscope {

class CutLiterals {
 public:
  static constexpr size_t kBlock = 3;  // letters that are looked at first
  [[nodiscard]] static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

  // Each literal in lower case.
  explicit CutLiterals(const std::vector<std::string>& literals);

  // Whether the break at `line_break` may cut any: a quick look, which most breaks do not pass.
  [[nodiscard]] bool may_cut(std::string_view text, size_t line_break) const {
    size_t end = line_break;
    while (end > 0 && is_blank(text[end - 1])) --end;
    if (end == 0 || text[end - 1] == '\n') return false;  // behind an empty line nothing goes on
    if (end < kBlock || line_break + kBlock >= text.size() || is_blank(text[line_break + 1])) return true;
    const char* const before = text.data() + end - kBlock;
    const char* const behind = text.data() + line_break + 1;
    const bool is_short = behind[0] == '\n' || behind[1] == '\n' || behind[2] == '\n';
    if (is_short) return before[0] != '\n' && is_of_one_line(before) && before_.any_short.test(block_index(before));
    return (is_of_one_line(before) && before_.any.test(block_index(before))) || behind_.any.test(block_index(behind));
  }
  // Those that the break at `line_break` of `text`, or the colour that begins there, cuts first, in the order of their
  // begin. Each comparison with the lines behind takes one from `budget`; at 0 none is found.
  [[nodiscard]] std::vector<TriggerScan::Hit> at(std::string_view text, size_t line_break, int64_t& budget) const;
  // Of the longest literal.
  [[nodiscard]] size_t longest() const { return longest_; }

 private:
  // Literals hold no break; before the first letter one may stand, where a line begins with two letters of a literal.
  [[nodiscard]] static bool is_of_one_line(const char* block) { return block[1] != '\n'; }
  // Of three letters, as TriggerScan's: the low five bits of a letter are the same in both cases; a break counts as a
  // blank.
  [[nodiscard]] static size_t block_index(const char* block) {
    const auto bits = [&](size_t i) {
      return block[i] == '\n' ? size_t{0} : static_cast<size_t>(static_cast<unsigned char>(block[i]) & 0x1F);
    };
    return bits(0) | bits(1) << 5 | bits(2) << 10;
  }

  struct Cut {
    uint16_t literal = 0;
    uint16_t length = 0;  // of the part before the break
  };
  struct Table {
    std::bitset<1 << 15> any;
    std::bitset<1 << 15> any_short;  // of those of which less than a block follows
    std::unordered_map<size_t, std::vector<Cut>> cuts;
    void add(std::string_view block, Cut cut);
  };

  const std::vector<std::string>& literals_;
  Table before_;  // by the last three letters before the break
  Table behind_;  // by the first three letters behind it
  size_t longest_ = 0;
};

}  // namespace oomscope
