#include "evidence/text/trigger_scan.h"

#include <algorithm>
#include <cstring>

namespace oomscope {
namespace {

constexpr size_t kBlock = 3;
constexpr size_t kMostShift = TriggerScan::kShortest - kBlock + 1;

// Of the three bytes before `end`, the low five bits each: the same for both cases of a letter. Reads four bytes.
size_t block_index(const char* end) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, end - 4, sizeof bytes);
  return ((bytes >> 8) & 0x1F) | ((bytes >> 11) & 0x3E0) | ((bytes >> 14) & 0x7C00);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equals_without_case(const char* text, const std::string& literal) {
  for (size_t i = 0; i < literal.size(); ++i) {
    if (lower(text[i]) != literal[i]) return false;
  }
  return true;
}

}  // namespace

TriggerScan::TriggerScan(std::vector<std::string> literals) : literals_(std::move(literals)), buckets_(1 << 15) {
  shift_.fill(kMostShift);
  for (size_t id = 0; id < literals_.size(); ++id) {
    const std::string& literal = literals_[id];
    for (size_t end = kBlock; end <= kShortest; ++end) {
      const std::string padded = " " + literal;  // block_index reads a byte more
      const size_t index = block_index(padded.data() + 1 + end);
      shift_[index] = std::min<uint8_t>(shift_[index], static_cast<uint8_t>(kShortest - end));
    }
    buckets_[block_index(literal.data() + kShortest)].push_back(static_cast<uint16_t>(id));
  }
}

TriggerScan::Hit TriggerScan::next(std::string_view text, size_t from) const {
  const char* const data = text.data();
  size_t end = from + kShortest;  // of the window
  while (end <= text.size()) {
    const uint8_t shift = shift_[block_index(data + end)];
    if (shift > 0) {
      end += shift;
      continue;
    }
    const size_t begin = end - kShortest;
    for (uint16_t id : buckets_[block_index(data + end)]) {
      const std::string& literal = literals_[id];
      if (begin + literal.size() <= text.size() && equals_without_case(data + begin, literal)) return {begin, id};
    }
    ++end;
  }
  return {};
}

}  // namespace oomscope
