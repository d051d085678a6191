// StackBytes: from the bytes of a pickled list of frames straight to a StackId. See event_template.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "evidence/memo_table.h"
#include "evidence/snapshot_rows.h"

namespace oomscope {

class StackBytes {
 public:
  StackBytes(ReaderTables& tables, MemoTable& memo) : tables_(tables), memo_(memo), slots_(1024, 0) {}

  // `cursor` is behind the MARK of a list: reads memo-gets of frames up to and with APPENDS; SETITEMS must
  // follow. nullptr: something else.
  const uint8_t* read(const uint8_t* cursor, const uint8_t* end, StackId& stack) {
    uint32_t next = entries_[last_].next;
    const Entry& guess = entries_[next];
    bool is_right = guess.length > 0 && guess.length <= static_cast<size_t>(end - cursor) &&
                    std::memcmp(bytes_.data() + guess.offset, cursor, guess.length) == 0;
    if (!is_right) return find(cursor, end, stack);
    last_ = next;
    stack = guess.stack;
    return cursor + guess.length;
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
    uint32_t next = 0;  // the entry that followed this one last time
  };

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
