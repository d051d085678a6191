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
  // Each literal in lower case.
  explicit CutLiterals(const std::vector<std::string>& literals);

  // Those that the break at `line_break` of `text`, or the colour that begins there, cuts first, in the order of their
  // begin. Each comparison with the lines behind takes one from `budget`; at 0 none is found.
  [[nodiscard]] std::vector<TriggerScan::Hit> at(std::string_view text, size_t line_break, int64_t& budget) const;
  // Of the longest literal.
  [[nodiscard]] size_t longest() const { return longest_; }

 private:
  struct Cut {
    uint16_t literal = 0;
    uint16_t length = 0;  // of the part before the break
  };
  struct Table {
    std::bitset<1 << 15> any;
    std::unordered_map<size_t, std::vector<Cut>> cuts;
    void add(std::string_view block, Cut cut);
  };

  const std::vector<std::string>& literals_;
  Table before_;  // by the last three letters before the break
  Table behind_;  // by the first three letters behind it
  size_t longest_ = 0;
};

}  // namespace oomscope
