// StackBytes: from the bytes of a pickled list of frames straight to a StackId. See event_template.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "evidence/memo_table.h"
#include "evidence/snapshot_rows.h"

namespace oomscope {

class StackBytes {
 public:
  StackBytes(ReaderTables& tables, MemoTable& memo) : tables_(tables), memo_(memo), slots_(kFirstSlots, 0) {}

  // `cursor` is behind the MARK of a list: reads memo-gets of frames up to and with APPENDS; SETITEMS must
  // follow. nullptr: something else.
  const uint8_t* read(const uint8_t* cursor, const uint8_t* end, StackId& stack) {
    Entry& last = entries_[last_];
    if (!is_at(cursor, end, last.next)) {
      if (!is_at(cursor, end, last.next_before)) return find(cursor, end, stack);
      std::swap(last.next, last.next_before);
    }
    last_ = last.next;
    stack = entries_[last_].stack;
    return cursor + entries_[last_].length;
  }
  // One memo-get of a frame, then APPEND: how a list of one is written. nullptr: something else.
  const uint8_t* read_single(const uint8_t* cursor, const uint8_t* end, StackId& stack);
  void clear();
  [[nodiscard]] int64_t memory_bytes() const;

 private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t offset = 0;
    uint32_t length = 0;
    StackId stack = StackId::none;
    uint32_t next = 0;         // the entry that followed this one last time
    uint32_t next_before = 0;  // and the latest other one
  };

  [[nodiscard]] bool is_at(const uint8_t* cursor, const uint8_t* end, uint32_t index) const {
    const Entry& guess = entries_[index];
    return guess.length > 0 && guess.length <= static_cast<size_t>(end - cursor) &&
           std::memcmp(bytes_.data() + guess.offset, cursor, guess.length) == 0;
  }

  static constexpr size_t kFirstSlots = 1024;

  const uint8_t* find(const uint8_t* cursor, const uint8_t* end, StackId& stack);
  bool add(std::span<const uint8_t> bytes, uint64_t hash, size_t slot);

  ReaderTables& tables_;
  MemoTable& memo_;
  std::vector<uint8_t> bytes_;
  std::vector<Entry> entries_ = {Entry{}};  // entry 0: nothing has come before
  std::vector<uint32_t> slots_;             // indices of entries, 0 = empty; power-of-two size
  std::vector<uint32_t> frame_ids_;
  uint32_t last_ = 0;
};

}  // namespace oomscope
