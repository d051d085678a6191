#include "report/terminal.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace oomscope {
namespace {

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::bold: return "\x1b[1m";
    case Style::dim: return "\x1b[2m";
    case Style::red: return "\x1b[1;31m";
    case Style::yellow: return "\x1b[33m";
    case Style::green: return "\x1b[32m";
    case Style::cyan: return "\x1b[36m";
  }
  return "";
}

// One decoded character; length 1 and is_valid false for a byte that starts none.
struct Character {
  uint32_t code = 0;
  size_t length = 1;
  bool is_valid = false;
};

Character decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {.code = lead, .length = 1, .is_valid = true};
  const size_t length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead >= 0xf5 || at + length > text.size()) return {};
  uint32_t code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {.code = code, .length = length, .is_valid = true};
}

struct Range {
  uint32_t first;
  uint32_t last;
};

// The blocks that matter for names and paths; unassigned and rare wide characters count as 1.
int width_of(uint32_t code) {
  constexpr std::array<Range, 6> kZero = {
      {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0x1ab0, 0x1aff}}};
  constexpr std::array<Range, 9> kWide = {{{0x1100, 0x115f},
                                           {0x2e80, 0x303e},
                                           {0x3041, 0xa4cf},
                                           {0xac00, 0xd7a3},
                                           {0xf900, 0xfaff},
                                           {0xfe30, 0xfe6f},
                                           {0xff00, 0xff60},
                                           {0x1f300, 0x1f64f},
                                           {0x1f900, 0x1f9ff}}};
  const auto holds = [&](const Range& range) { return code >= range.first && code <= range.last; };
  if (std::any_of(kZero.begin(), kZero.end(), holds)) return 0;
  if (std::any_of(kWide.begin(), kWide.end(), holds)) return 2;
  return 1;
}

// Characters that change what a terminal or reader sees: C0, DEL, C1, and the marks that reverse text direction.
bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x2028 || code == 0x2029;
}

std::string hex_escape(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (char c : bytes) {
    const uint8_t byte = static_cast<uint8_t>(c);
    text += "\\x";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Marks that must not begin a line, and marks that must not end one.
bool is_closing(uint32_t code) {
  constexpr std::u32string_view kMarks = U"\uff0c\u3002\uff1b\uff1a\u3001\uff09\uff01\uff1f\u300b\u201d\u2019,.;:)%]";
  return kMarks.find(code) != std::u32string_view::npos;
}

bool is_opening(uint32_t code) {
  constexpr std::u32string_view kMarks = U"\uff08\u300a\u201c\u2018([";
  return kMarks.find(code) != std::u32string_view::npos;
}

// A word in the pieces between which a line may break: Chinese has no blanks, so it may beside each wide character; and
// settings have none, so it may behind a comma that does not group digits.
std::vector<std::string_view> pieces_of(std::string_view word) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  Character before;
  for (size_t at = 0; at < word.size(); at += before.length) {
    const Character next = decode(word, at);
    const bool beside_wide = width_of(before.code) == 2 || width_of(next.code) == 2;
    const bool behind_comma = before.code == ',' && next.code > '9';
    if (at > 0 && (beside_wide || behind_comma) && !is_opening(before.code) && !is_closing(next.code)) {
      pieces.push_back(word.substr(begin, at - begin));
      begin = at;
    }
    before = next;
  }
  if (begin < word.size()) pieces.push_back(word.substr(begin));
  return pieces;
}

}  // namespace

std::string styled(std::string_view text, Style style, const TerminalOptions& options) {
  if (!options.colour || style == Style::plain || text.empty()) return std::string(text);
  return std::string(code_of(style)) + std::string(text) + "\x1b[0m";
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = decode(text, at);
    width += character.is_valid ? width_of(character.code) : 1;
    at += character.length;
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const Character character = decode(text, at);
    const std::string_view bytes = text.substr(at, character.length);
    at += character.length;
    if (!character.is_valid || is_control(character.code)) {
      safe += bytes == "\n" ? "\\n" : bytes == "\t" ? "\\t" : hex_escape(bytes);
    } else {
      safe += bytes;
    }
  }
  return safe;
}

std::string shorten(std::string_view text, int width_columns, Keep keep, const TerminalOptions& options) {
  if (display_width(text) <= width_columns) return std::string(text);
  const std::string_view dots = options.unicode ? "\u2026" : "..";
  const int room = width_columns - display_width(dots);
  if (room <= 0) return std::string(static_cast<size_t>(std::max(0, width_columns)), '.');
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size();) {
    const Character character = decode(text, at);
    characters.push_back(text.substr(at, character.length));
    at += character.length;
  }
  if (keep == Keep::tail) std::reverse(characters.begin(), characters.end());
  size_t count = 0;
  for (int used = 0; count < characters.size(); ++count) {
    used += display_width(characters[count]);
    if (used > room) break;
  }
  characters.resize(count);
  if (keep == Keep::tail) std::reverse(characters.begin(), characters.end());
  std::string kept;
  for (std::string_view character : characters) kept += character;
  return keep == Keep::head ? kept + std::string(dots) : std::string(dots) + kept;
}

std::string pad_right(std::string_view text, int width_columns) {
  const int missing = std::max(0, width_columns - display_width(text));
  return std::string(text) + std::string(static_cast<size_t>(missing), ' ');
}

std::string pad_left(std::string_view text, int width_columns) {
  const int missing = std::max(0, width_columns - display_width(text));
  return std::string(static_cast<size_t>(missing), ' ') + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, int width_columns) {
  std::vector<std::string> lines;
  for (std::string_view paragraph : split(text, '\n')) {
    std::string line;
    int used = 0;
    for (std::string_view word : split(paragraph, ' ')) {
      int gap = line.empty() ? 0 : 1;
      for (std::string_view piece : pieces_of(word)) {
        const int width = display_width(piece);
        if (!line.empty() && used + gap + width > width_columns) {
          lines.push_back(std::move(line));
          line.clear();
          used = gap = 0;
        }
        line += std::string(static_cast<size_t>(gap), ' ');
        line += piece;
        used += gap + width;
        gap = 0;
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string sparkline(const std::vector<double>& values, const TerminalOptions& options) {
  constexpr std::array<std::string_view, 8> kBlocks = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                       "\u2585", "\u2586", "\u2587", "\u2588"};
  constexpr std::array<std::string_view, 8> kAscii = {"_", ".", ":", "-", "=", "+", "*", "#"};
  double largest = 0;
  for (double value : values) {
    if (value > largest) largest = value;  // false for NaN
  }
  std::string line;
  for (double value : values) {
    size_t level = 0;
    if (value > 0 && largest > 0) level = std::min<size_t>(7, static_cast<size_t>(value / largest * 7.999));
    line += options.unicode ? kBlocks[level] : kAscii[level];
  }
  return line;
}

std::vector<double> downsample_max(const std::vector<double>& values, size_t count) {
  if (values.size() <= count || count == 0) return values;
  std::vector<double> points;
  for (size_t k = 0; k < count; ++k) {
    const size_t begin = values.size() * k / count;
    const size_t end = values.size() * (k + 1) / count;
    points.push_back(*std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                       values.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  return points;
}

}  // namespace oomscope
