#include "evidence/text/printed_bytes.h"

#include <charconv>
#include <string>

namespace oomscope {
namespace {

// The power of 1024 of a unit: "GiB", "GB", "G", "kB", "bytes". Empty: no unit.
std::optional<int> power_of(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b" || unit.starts_with("byte") || unit.starts_with("Byte")) return 0;
  constexpr std::string_view kLetters = "KMGTPE";
  const char first = unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 32) : unit[0];
  const size_t at = kLetters.find(first);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (!(rest.empty() || rest == "B" || rest == "iB" || rest == "b" || rest == "ib" || rest == "i")) return std::nullopt;
  return static_cast<int>(at) + 1;
}

// "6,99 GiB" as some languages write it: two digits behind the only comma, where thousands would have three.
bool has_decimal_comma(std::string_view number) {
  const size_t comma = number.find(',');
  return comma != std::string_view::npos && comma > 0 && number.size() == comma + 3 &&
         number.find_first_of(",.", comma + 1) == std::string_view::npos &&
         number.substr(0, comma).find('.') == std::string_view::npos;
}

}  // namespace

std::optional<double> printed_bytes(std::string_view text) {
  constexpr size_t kLongest = 40;  // far beyond what any message prints
  std::string digits;
  size_t at = 0;
  const bool is_decimal = has_decimal_comma(text.substr(0, text.find_first_not_of("0123456789.,")));
  for (; at < text.size() && at < kLongest; ++at) {
    const char c = text[at];
    if (c == ',' && is_decimal) {
      digits += '.';
      continue;
    }
    if (c == ',' || (c == ' ' && digits.empty())) continue;
    if (!((c >= '0' && c <= '9') || c == '.' || (c == '-' && digits.empty()))) break;
    digits += c;
  }
  double number = 0;
  const std::from_chars_result read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc{} || read.ptr != digits.data() + digits.size()) return std::nullopt;
  std::string_view unit = text.substr(at);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::optional<int> power = power_of(unit);
  if (!power) return std::nullopt;
  for (int i = 0; i < *power; ++i) number *= 1024;
  return number;
}

}  // namespace oomscope
