// A piece of a log made comparable: colours, progress bars, prefixes of ranks and loggers, quoting and escapes are
// gone, and in `squeezed` all blanks and line breaks too.
//
// Why squeeze: terminals and people wrap messages anywhere, between words ("Out \nof memory"), between a number and its
// unit ("15.75 / GiB") and inside both. Without blanks all these are the same text, and patterns need not foresee them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oomscope {

struct CleanLine {
  std::string text;      // with its blanks, prefixes gone
  size_t raw_begin = 0;  // in the raw piece
  size_t raw_end = 0;
  std::optional<int> rank;  // of a prefix like "[rank3]:"
};

struct CleanText {
  std::vector<CleanLine> lines;
  std::string squeezed;
  std::vector<uint32_t> raw_offsets;  // of each character of `squeezed`

  // Where the character at `raw` went, or the next one that survived.
  [[nodiscard]] size_t squeezed_at(size_t raw) const;
  [[nodiscard]] const CleanLine* line_at(size_t raw) const;
};

// Any bytes; UTF-8 and single-byte text pass unchanged.
[[nodiscard]] std::vector<CleanLine> clean_lines(std::string_view raw);
// With their prefixes: a table's first column looks like a logger's.
[[nodiscard]] std::vector<CleanLine> plain_lines(std::string_view raw);
// With a rank: without the lines of other ranks, which print over each other.
[[nodiscard]] CleanText clean_text(std::string_view raw, std::optional<int> rank = std::nullopt);
// Of the rank whose line holds the character at `at`.
[[nodiscard]] CleanText clean_text_at(std::string_view raw, size_t at);
[[nodiscard]] bool is_of_other_rank(const CleanLine& line, std::optional<int> rank);

}  // namespace oomscope
