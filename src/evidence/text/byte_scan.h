// Loops over the bytes of a log that go eight at a time, or from one find to the next.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace oomscope {

inline constexpr uint64_t kOnes = 0x0101010101010101;

inline uint64_t word_at(const char* text) {
  uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return word;
}

// Eight bytes at a time, since a line may have one: each byte of `sums` counts the breaks at its place.
inline int64_t line_breaks(std::string_view text) {
  constexpr size_t kMostWords = 255;  // a byte counts so far
  constexpr uint64_t kLow = kOnes * 0x7F;
  int64_t count = 0;
  while (text.size() >= sizeof(uint64_t)) {
    const size_t words = std::min(text.size() / sizeof(uint64_t), kMostWords);
    uint64_t sums = 0;
    for (size_t i = 0; i < words; ++i) {
      const uint64_t word = word_at(text.data() + i * sizeof(uint64_t)) ^ (kOnes * '\n');
      sums += ~(((word & kLow) + kLow) | word | kLow) >> 7;  // 1 where the byte is 0
    }
    for (; sums != 0; sums >>= 8) count += static_cast<int64_t>(sums & 0xFF);
    text.remove_prefix(words * sizeof(uint64_t));
  }
  return count + std::count(text.begin(), text.end(), '\n');
}

// As text.find(byte, from), without a call where the byte is near: lines may be short, or empty by the million.
inline size_t next_byte(std::string_view text, char byte, size_t from) {
  constexpr size_t kWords = 4;
  if constexpr (std::endian::native == std::endian::little) {
    const uint64_t wanted = kOnes * static_cast<unsigned char>(byte);
    for (size_t i = 0; i < kWords && from + sizeof(uint64_t) <= text.size(); ++i, from += sizeof(uint64_t)) {
      const uint64_t word = word_at(text.data() + from) ^ wanted;
      const uint64_t zeros = (word - kOnes) & ~word & (kOnes << 7);  // the lowest set one is exact
      if (zeros != 0) return from + static_cast<size_t>(std::countr_zero(zeros)) / 8;
    }
  }
  return text.find(byte, from);
}

// Where the next byte stands behind the one at `at` that a literal may be cut at. Of bytes that repeat, as breaks of
// empty lines, the first alone may cut something; of lines of one letter those whose next line has more.
inline size_t behind_run(std::string_view text, size_t at) {
  constexpr uint64_t kEvery = kOnes & 0x00FF00FF00FF00FF;  // every second byte
  constexpr std::string_view kEmptyLines = "\r\n\r\n\r\n\r\n";
  const char byte = text[at++];
  const bool is_plain = byte == '\n' && at + 1 < text.size() && text[at] > '\r' && text[at + 1] != '\n';
  if (is_plain) return at;
  const uint64_t same = kOnes * static_cast<unsigned char>(byte);
  while (at + sizeof(uint64_t) <= text.size() && word_at(text.data() + at) == same) at += sizeof(uint64_t);
  while (at < text.size() && text[at] == byte) ++at;
  if (byte != '\n' || std::endian::native != std::endian::little) return at;
  while (text.substr(at).starts_with(kEmptyLines)) at += kEmptyLines.size();
  const auto are_letters = [&](size_t line_break) {
    return line_break + sizeof(uint64_t) <= text.size() &&
           ((word_at(text.data() + line_break) ^ (kEvery * '\n')) & (kEvery * 0xFF)) == 0;
  };
  while (are_letters(at - 1)) at += 4;
  return at;
}

// Each `written` in `text` becomes one blank. The new size.
inline size_t make_blank(char* text, size_t size, std::string_view written) {
  const char* const end = text + size;
  const char* in = text;
  char* out = text;
  while (in < end) {
    const auto* at = static_cast<const char*>(std::memchr(in, written.front(), static_cast<size_t>(end - in)));
    const char* const next = at == nullptr ? end : at;
    if (out != in) std::memmove(out, in, static_cast<size_t>(next - in));
    out += next - in;
    in = next;
    if (in == end) break;
    const bool is_it = std::string_view(in, static_cast<size_t>(end - in)).starts_with(written);
    *out++ = is_it ? ' ' : *in;
    in += is_it ? written.size() : 1;
  }
  return static_cast<size_t>(out - text);
}

// Blanks of other kinds become blanks: tabs, and the no-break ones of web pages, which are shorter then. The new size.
inline size_t make_blanks_plain(char* text, size_t size) {
  const auto find = [end = text + size](char* from, char c) {
    return static_cast<char*>(std::memchr(from, c, static_cast<size_t>(end - from)));
  };
  for (char* tab = find(text, '\t'); tab != nullptr; tab = find(tab, '\t')) *tab = ' ';
  return make_blank(text, make_blank(text, size, "\xC2\xA0"), "&nbsp;");
}

}  // namespace oomscope
