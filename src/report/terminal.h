// Text for a terminal: styles, widths, wrapping, sparklines. Knows nothing of findings, and looks at nothing but its
// arguments: the width, colour and character set are decided once in src/cli/terminal_environment.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oomscope {

struct TerminalOptions {
  int width_columns = 80;
  bool colour = false;
  bool unicode = false;  // false: block characters and ellipses fall back to ASCII
};

enum class Style { plain, bold, dim, red, yellow, green, cyan };

// `text` between ANSI codes, or as it is where colour is off, the style plain or the text empty.
[[nodiscard]] std::string styled(std::string_view text, Style style, const TerminalOptions& options);

// Columns that UTF-8 text takes: 2 for East Asian wide characters and emoji, 0 for combining marks, 1 for a bad byte.
// The text must hold no control characters; see printable.
[[nodiscard]] int display_width(std::string_view text);

// Text from outside (function names, paths, annotations) made safe to print: control characters, escape sequences and
// bytes that are not UTF-8 become `\x1b`-like escapes.
[[nodiscard]] std::string printable(std::string_view text);

// Which end of a text that is too long is worth keeping: the head of a sentence, the tail of a path.
enum class Keep { head, tail };
[[nodiscard]] std::string shorten(std::string_view text, int width_columns, Keep keep, const TerminalOptions& options);

// `text` filled to the width on the right (left-aligned) or left (right-aligned).
[[nodiscard]] std::string pad_right(std::string_view text, int width_columns);
[[nodiscard]] std::string pad_left(std::string_view text, int width_columns);

// Words into lines of at most `width_columns`; a longer word stands alone and whole, but a line may break beside each
// wide character. Newlines in `text` are kept.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, int width_columns);

// One character a value, scaled between 0 and the largest; negative and NaN count as 0.
[[nodiscard]] std::string sparkline(const std::vector<double>& values, const TerminalOptions& options);

// `values` brought to at most `count` points, each the largest of its share: peaks survive.
[[nodiscard]] std::vector<double> downsample_max(const std::vector<double>& values, size_t count);

}  // namespace oomscope
