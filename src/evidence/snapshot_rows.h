// From the key-value pairs of one dictionary to one row: frame, event, segment, block, annotation. What a dictionary
// is shows in its keys alone, so the same code reads every vintage (torch 1.13 to 2.13).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "evidence/snapshot_slot.h"
#include "evidence/snapshot_words.h"
#include "evidence/stack_interner.h"
#include "evidence/trace_builder.h"
#include "types/snapshot.h"

namespace oomscope {

// An entry of a block's `history` (torch 1.13 and 2.0).
struct HistoryRow {
  uint64_t addr = 0;
  int64_t real_size = 0;
  StackId stack = StackId::none;
};

// All that the reader has decoded so far. `snapshot` has segments, blocks, annotations, strings, stacks and features;
// the traces wait in `traces` until it is known which device each belongs to.
struct ReaderTables {
  Snapshot snapshot;
  StackInterner stacks{snapshot.stacks};
  std::vector<PoolId> pairs;
  std::map<PoolId, uint32_t> pair_ids;
  std::vector<EventRow> loose_events;  // decoded, but not yet in a list
  std::vector<HistoryRow> histories;   // of the block being read
  std::vector<std::unique_ptr<TraceBuilder>> traces;
  std::vector<std::vector<uint32_t>> trace_lists;  // a list of traces; kNoTrace for a device without events
  std::vector<std::vector<Slot>> maps;             // key, value, key, value ...
  // What could not be read, for the caveats.
  int64_t unreadable_events = 0;
  int64_t unreadable_segments = 0;
  int64_t skipped_items = 0;
  int64_t text_bytes = 0;  // memory of snapshot.strings, about

  static constexpr uint32_t kNoTrace = UINT32_MAX;
  [[nodiscard]] int64_t trace_bytes() const;
  [[nodiscard]] int64_t other_bytes() const;
};

enum class RowKind : uint8_t { unknown, frame, event, segment, block, history, annotation };

[[nodiscard]] KeySet keys_of(std::span<const Slot> pairs);
[[nodiscard]] RowKind row_kind_of(KeySet keys);

// Decodes `pairs` (key, value, key, value ...; all values frozen) and adds the row to its table. The slot says where;
// opaque where the row makes no sense.
Slot add_row(ReaderTables& tables, RowKind kind, KeySet keys, std::span<const Slot> pairs);

StringId intern_text(ReaderTables& tables, std::string_view text);
uint32_t intern_pair(ReaderTables& tables, PoolId pair);

}  // namespace oomscope
