// Finds any of some hundred literals in gigabytes of text, fast: most bytes are never looked at.
//
// Wu and Manber's method: a table tells for each three bytes how far the window may jump, since no literal holds them
// nearer to the end of its first m bytes (m: the shortest literal). Letters compare without case. Measured: see
// bench/text_log.py.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oomscope {

class TriggerScan {
 public:
  static constexpr size_t kShortest = 6;
  // Each literal in lower case and at least kShortest long.
  explicit TriggerScan(std::vector<std::string> literals);

  struct Hit {
    size_t at = std::string_view::npos;  // npos: none
    size_t literal = 0;                  // index; the first one that fits
  };
  // The first literal that begins at `from` or later.
  [[nodiscard]] Hit next(std::string_view text, size_t from) const;
  [[nodiscard]] const std::vector<std::string>& literals() const { return literals_; }

 private:
  std::vector<std::string> literals_;
  std::array<uint8_t, 1 << 15> shift_{};
  std::vector<std::vector<uint16_t>> buckets_;
};

}  // namespace oomscope
