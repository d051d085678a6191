// MemoTable: pickle's memo, four bytes an entry.
//
// A trace of a million events memoises 2.6 million objects and looks up few of them. An entry is a tag of 3 bits and an
// index of 29; whatever does not fit there is `opaque` (0), which need not be written at all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/zero_table.h"

namespace oomscope {

enum class MemoTag : uint32_t {
  opaque,
  text,      // StringId
  frame,     // index into StackTable::frames
  stack,     // StackId
  pair,      // index of a tuple of two integers
  boxed,     // index of a slot kept elsewhere
  building,  // index of a builder: a container that may still grow
};

struct MemoEntry {
  uint32_t bits = 0;
  static constexpr uint32_t kIndexBits = 29;
  static constexpr uint32_t kMaxIndex = (uint32_t{1} << kIndexBits) - 1;

  static MemoEntry of(MemoTag tag, uint32_t index) {
    if (index > kMaxIndex) return MemoEntry{};
    return MemoEntry{(static_cast<uint32_t>(tag) << kIndexBits) | index};
  }
  [[nodiscard]] MemoTag tag() const { return static_cast<MemoTag>(bits >> kIndexBits); }
  [[nodiscard]] uint32_t index() const { return bits & kMaxIndex; }
};

class MemoTable {
 public:
  [[nodiscard]] uint32_t next_index() const { return next_; }
  // Where the entries lie: good until the next put, ensure or reserve.
  [[nodiscard]] uint32_t* data() { return entries_.data(); }
  void set_next_index(uint32_t next) { next_ = next; }
  // Entries [0, count) exist afterwards.
  void ensure(size_t count) {
    if (count > entries_.size()) reserve(std::max(count, entries_.size() * 2));
  }
  void put(uint32_t index, MemoEntry entry) {
    ensure(size_t{index} + 1);
    entries_[index] = entry.bits;
    if (index < next_) {
      ++overwrites_;
    } else {
      next_ = index + 1;
    }
  }
  // A container's entry, once the container is complete: `building` until now.
  void complete(uint32_t index, MemoEntry entry) { entries_[index] = entry.bits; }
  // How often an index was put that had been put before, or skipped.
  [[nodiscard]] uint64_t overwrites() const { return overwrites_; }
  [[nodiscard]] bool has(uint64_t index) const { return index < next_; }
  [[nodiscard]] MemoEntry get(uint32_t index) const { return MemoEntry{entries_[index]}; }
  void reserve(size_t count) {
    if (count > entries_.size()) entries_.resize(count);
  }
  [[nodiscard]] int64_t memory_bytes() const { return static_cast<int64_t>(entries_.size() * sizeof(uint32_t)); }

 private:
  ZeroTable<uint32_t> entries_;
  uint32_t next_ = 0;
  uint64_t overwrites_ = 0;
};

}  // namespace oomscope
