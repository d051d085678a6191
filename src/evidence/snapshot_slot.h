// Slot: a value on the reader's stack. Small and copyable; whatever is larger lives in a table and the slot has its
// index. Containers stay builders while they may still grow, and are frozen into one of the other kinds when
// something consumes them.
#pragma once

#include <cstdint>

namespace oomscope {

enum class SlotKind : uint8_t {
  opaque,  // a value of no interest, or one that cannot be shown (a container inside itself)
  mark,
  none,
  boolean,      // bits 0 or 1
  integer,      // bits, two's complement unless is_unsigned
  real,         // bits of a double
  text,         // index is a StringId
  pair,         // index into ReaderTables::pairs: a tuple of two integers
  frame,        // index into StackTable::frames
  stack,        // index is a StackId; 0 also stands for any empty list
  history,      // index into ReaderTables::histories
  event,        // index into ReaderTables::loose_events
  segment,      // index into Snapshot::segments
  block,        // index into Snapshot::blocks
  annotation,   // index into Snapshot::annotations
  histories,    // the newest: index into ReaderTables::histories
  segments,     // index of the first, bits the count
  blocks,       // index of the first, bits the count
  annotations,  // index of the first, bits the count
  trace,        // index into ReaderTables::traces
  traces,       // index into ReaderTables::trace_lists
  map,          // index into ReaderTables::maps
  list,         // index of a builder
  dict,         // index of a builder
};

struct Slot {
  SlotKind kind = SlotKind::opaque;
  bool is_unsigned = false;  // integers of 2^63 and more
  uint32_t index = 0;
  uint64_t bits = 0;

  [[nodiscard]] bool is_integer() const { return kind == SlotKind::integer; }
  [[nodiscard]] bool is_builder() const { return kind == SlotKind::list || kind == SlotKind::dict; }
  // Clamped: no field that is read as signed means anything above 2^63.
  [[nodiscard]] int64_t as_signed() const { return is_unsigned ? INT64_MAX : static_cast<int64_t>(bits); }
};

static_assert(sizeof(Slot) == 16);

}  // namespace oomscope
