#include "base/bytes_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "base/text.h"

namespace oomscope {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// `what` is "error.size.WHAT".
Error size_error(std::string_view text, std::string_view what, std::string code = "bad-size", std::string unit = "") {
  return Error{.code = std::move(code),
               .what = "error.size." + std::string(what),
               .where = "\"" + std::string(text) + "\"",
               .hint = "error.size.hint",
               .values = {{"unit", std::move(unit)}}};
}

std::optional<int64_t> unit_bytes(std::string_view unit) {
  std::string name;
  for (char c : unit) name += lower(c);
  if (name.empty() || name == "b" || name == "byte" || name == "bytes") return 1;
  constexpr std::array<int64_t, 4> kUnits = {kKiB, kMiB, kGiB, kTiB};
  const size_t index = std::string_view("kmgt").find(name[0]);
  const std::string_view rest = std::string_view(name).substr(1);
  if (index == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib" || rest == "i")) return {};
  return kUnits[index];
}

// The digits of a size, split at the decimal point, with the thousands commas checked and removed.
struct Number {
  std::string whole;
  std::string fraction;
  size_t length = 0;  // characters of the text that it took
};

std::optional<Number> read_number(std::string_view text) {
  Number number;
  bool grouped = false;
  size_t since_comma = 0;
  size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || text[i] == ','); ++i) {
    if (text[i] == ',') {
      if (grouped ? since_comma != 3 : (since_comma == 0 || since_comma > 3)) return {};
      grouped = true;
      since_comma = 0;
    } else {
      number.whole += text[i];
      ++since_comma;
    }
  }
  if (grouped && since_comma != 3) return {};
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && is_digit(text[i]); ++i) number.fraction += text[i];
    if (number.fraction.empty()) return {};
  }
  if (number.whole.empty() && number.fraction.empty()) return {};
  number.length = i;
  return number;
}

// floor(0.DIGITS * unit), exactly: nested floors of divisions by ten equal the floor of the whole.
int64_t fraction_of(std::string_view digits, int64_t unit) {
  int64_t value = 0;
  for (size_t i = digits.size(); i-- > 0;) value = ((digits[i] - '0') * unit + value) / 10;
  return value;
}

std::string group_digits(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

// -2^63 has no positive int64_t.
uint64_t magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

std::string_view sign_of(int64_t value) { return value < 0 ? "-" : value > 0 ? "+" : ""; }
std::string_view minus_of(int64_t value) { return value < 0 ? "-" : ""; }

std::string magnitude_text(uint64_t size) {
  constexpr std::array<std::string_view, 3> kNames = {" KiB", " MiB", " GiB"};
  if (size < static_cast<uint64_t>(kKiB)) return std::to_string(size) + " B";
  size_t index = 0;
  uint64_t unit = static_cast<uint64_t>(kKiB);
  uint64_t hundredths = 0;
  for (;; ++index, unit <<= 10) {
    // Rounding can reach 1024.00 of a unit; that is 1.00 of the next.
    hundredths = size / unit * 100 + (size % unit * 100 + unit / 2) / unit;
    if (index == 2 || hundredths < 102400) break;
  }
  const uint64_t cents = hundredths % 100;
  return group_digits(hundredths / 100) + (cents < 10 ? ".0" : ".") + std::to_string(cents) +
         std::string(kNames[index]);
}

std::string mib_text(int64_t size_bytes, std::string_view sign) {
  const uint64_t size = magnitude(size_bytes);
  const uint64_t mib = size / static_cast<uint64_t>(kMiB) + (size % static_cast<uint64_t>(kMiB) >= kMiB / 2 ? 1 : 0);
  if (mib == 0 && size != 0) return "<1 MiB";
  return std::string(sign) + group_digits(mib) + " MiB";
}

}  // namespace

Result<int64_t> parse_size(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
  if (rest.empty()) return size_error(text, "missing");
  if (rest.front() == '-') return size_error(text, "negative");
  const std::optional<Number> number = read_number(rest);
  if (!number) return size_error(text, "no-size");
  rest.remove_prefix(number->length);
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
  const std::optional<int64_t> unit = unit_bytes(rest);
  if (!unit) return size_error(text, "unknown-unit", "bad-size", std::string(rest));
  if (*unit == 1 && !number->fraction.empty()) return size_error(text, "fraction");

  int64_t value = 0;
  for (char digit : number->whole) {
    if (value > (std::numeric_limits<int64_t>::max() - (digit - '0')) / 10) {
      return size_error(text, "too-large", "size-out-of-range");
    }
    value = value * 10 + (digit - '0');
  }
  const int64_t fraction_bytes = fraction_of(number->fraction, *unit);
  if (value > (std::numeric_limits<int64_t>::max() - fraction_bytes) / *unit) {
    return size_error(text, "too-large", "size-out-of-range");
  }
  return value * *unit + fraction_bytes;
}

std::string format_bytes(int64_t size_bytes) {
  return std::string(minus_of(size_bytes)) + magnitude_text(magnitude(size_bytes));
}

std::string format_bytes_signed(int64_t difference_bytes) {
  return std::string(sign_of(difference_bytes)) + magnitude_text(magnitude(difference_bytes));
}

std::string format_mib(int64_t size_bytes) { return mib_text(size_bytes, minus_of(size_bytes)); }

std::vector<int64_t> mib_adding_up(std::span<const int64_t> bytes) {
  const auto nearest = [](int64_t value) { return (value + kMiB / 2) / kMiB; };
  std::vector<int64_t> mib;
  std::vector<size_t> order(bytes.size());  // who was rounded down the most first
  for (size_t i = 0; i < bytes.size(); ++i) {
    mib.push_back(nearest(bytes[i]));
    order[i] = i;
  }
  const auto gained = [&](size_t i) { return mib[i] * kMiB - bytes[i]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return gained(a) < gained(b); });
  const auto sum = [](const auto& values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); };
  int64_t missing = nearest(sum(bytes)) - sum(mib);
  for (size_t i = 0; missing > 0 && i < order.size(); ++i, --missing) mib[order[i]] += 1;
  for (size_t i = order.size(); missing < 0 && i-- > 0;) {
    if (mib[order[i]] == 0) continue;
    mib[order[i]] -= 1;
    ++missing;
  }
  for (size_t i = 0; i < mib.size(); ++i) mib[i] = mib[i] == 0 ? std::min(bytes[i], kMiB / 2 - 1) : mib[i] * kMiB;
  return mib;
}

std::string format_mib_signed(int64_t difference_bytes) {
  return mib_text(difference_bytes, sign_of(difference_bytes));
}

std::string format_count(int64_t count) { return std::string(minus_of(count)) + group_digits(magnitude(count)); }

std::string format_address(uint64_t address) {
  std::array<char, 16> digits{};
  const std::to_chars_result written = std::to_chars(digits.data(), digits.data() + digits.size(), address, 16);
  return "0x" + std::string(digits.data(), written.ptr);
}

std::string format_percent(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  // Bytes of a GPU times 1000 stay far below 2^63; beyond it the digits lost do not show.
  int64_t scaled_part = part;
  int64_t scaled_whole = whole;
  while (magnitude(scaled_part) > (uint64_t{1} << 52)) {
    scaled_part /= 2;
    scaled_whole /= 2;
  }
  if (scaled_whole == 0) return "-";
  const uint64_t base = magnitude(scaled_whole);
  const uint64_t tenths = (magnitude(scaled_part) * 1000 + base / 2) / base;
  const bool negative = (part < 0) != (whole < 0) && tenths != 0;
  return (negative ? "-" : "") + group_digits(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace oomscope
