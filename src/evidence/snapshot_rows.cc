#include "evidence/snapshot_rows.h"

namespace oomscope {
namespace {

StringId text_or_none(const Slot& slot) { return slot.kind == SlotKind::text ? StringId{slot.index} : StringId::none; }
StackId stack_or_none(const Slot& slot) { return slot.kind == SlotKind::stack ? StackId{slot.index} : StackId::none; }
int64_t size_or_zero(const Slot& slot) { return slot.is_integer() ? slot.as_signed() : 0; }
bool truth_of(const Slot& slot) { return slot.kind == SlotKind::boolean && slot.bits != 0; }

Word key_at(std::span<const Slot> pairs, size_t i) {
  return pairs[i].kind == SlotKind::text ? word_of(StringId{pairs[i].index}) : Word::none;
}

PoolId pool_of(const ReaderTables& tables, const Slot& slot) {
  return slot.kind == SlotKind::pair ? tables.pairs[slot.index] : PoolId{};
}

Slot slot_at(SlotKind kind, size_t index) { return Slot{.kind = kind, .index = static_cast<uint32_t>(index)}; }

Slot add_frame(ReaderTables& tables, std::span<const Slot> pairs) {
  Frame frame;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Slot& value = pairs[i + 1];
    switch (key_at(pairs, i)) {
      case Word::name: frame.name = text_or_none(value); break;
      case Word::filename: frame.filename = text_or_none(value); break;
      case Word::line: frame.line = value.is_integer() ? value.bits : 0; break;
      default: break;
    }
  }
  return slot_at(SlotKind::frame, tables.stacks.intern_frame(frame));
}

// torch 2.0 kept C++ frames apart in `cpp_frames`; they count where there are no others.
struct StackKeys {
  StackId frames = StackId::none;
  StackId cpp_frames = StackId::none;
  [[nodiscard]] StackId chosen() const { return frames != StackId::none ? frames : cpp_frames; }
};

Slot add_event(ReaderTables& tables, std::span<const Slot> pairs) {
  EventRow row;
  StackKeys stack;
  bool has_action = false;
  bool has_address = false;
  bool has_size = false;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Slot& value = pairs[i + 1];
    switch (key_at(pairs, i)) {
      case Word::action:
        has_action = value.kind == SlotKind::text;
        row.action = action_of(text_or_none(value));
        break;
      case Word::addr:
      case Word::device_free:
        has_address = value.is_integer();
        row.addr = has_address ? value.bits : 0;
        break;
      case Word::size:
        has_size = value.is_integer();
        row.size = size_or_zero(value);
        break;
      case Word::stream: row.stream = StreamId{value.is_integer() ? value.bits : 0}; break;
      case Word::time_us: row.time_us = size_or_zero(value); break;
      case Word::frames: stack.frames = stack_or_none(value); break;
      case Word::cpp_frames: stack.cpp_frames = stack_or_none(value); break;
      case Word::compile_context: row.compile_context = text_or_none(value); break;
      case Word::user_metadata: row.user_metadata = text_or_none(value); break;
      case Word::pool_id:
        row.has_pool = value.kind == SlotKind::pair;
        row.pool = pool_of(tables, value);
        break;
      case Word::internal_metadata: row.is_forced = value.kind == SlotKind::text && value.index != 0; break;
      default: break;
    }
  }
  if (!has_action || !has_address || !has_size) {
    ++tables.unreadable_events;
    return Slot{};
  }
  row.stack = stack.chosen();
  SnapshotFeatures& features = tables.snapshot.features;
  features.event_pool_id = features.event_pool_id || row.has_pool;
  tables.loose_events.push_back(row);
  return slot_at(SlotKind::event, tables.loose_events.size() - 1);
}

Slot add_history(ReaderTables& tables, std::span<const Slot> pairs) {
  HistoryRow row;
  StackKeys stack;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Slot& value = pairs[i + 1];
    switch (key_at(pairs, i)) {
      case Word::addr: row.addr = value.is_integer() ? value.bits : 0; break;
      case Word::real_size: row.real_size = size_or_zero(value); break;
      case Word::frames: stack.frames = stack_or_none(value); break;
      case Word::cpp_frames: stack.cpp_frames = stack_or_none(value); break;
      default: break;
    }
  }
  row.stack = stack.chosen();
  tables.histories.push_back(row);
  return slot_at(SlotKind::history, tables.histories.size() - 1);
}

BlockState state_of(const Slot& slot) {
  switch (word_of(text_or_none(slot))) {
    case Word::active_allocated: return BlockState::active_allocated;
    case Word::active_pending_free:
    case Word::active_awaiting_free: return BlockState::active_pending_free;
    default: return BlockState::inactive;
  }
}

Slot add_block(ReaderTables& tables, KeySet keys, std::span<const Slot> pairs) {
  SnapshotBlock block;
  StackKeys stack;
  const Slot* history = nullptr;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Slot& value = pairs[i + 1];
    switch (key_at(pairs, i)) {
      case Word::address: block.address = value.is_integer() ? value.bits : 0; break;
      case Word::size: block.size = size_or_zero(value); break;
      case Word::requested_size: block.requested_size = size_or_zero(value); break;
      case Word::state: block.state = state_of(value); break;
      case Word::frames: stack.frames = stack_or_none(value); break;
      case Word::history: history = value.kind == SlotKind::histories ? &value : nullptr; break;
      default: break;
    }
  }
  block.stack = stack.chosen();
  if (!keys.has(Word::requested_size)) block.requested_size = block.size;
  // The newest entry of a block in use is its occupant; a free block keeps its last one, which is nobody's now.
  if (history != nullptr && history->index < tables.histories.size() && block.state != BlockState::inactive) {
    block.stack = tables.histories[history->index].stack;
    if (!keys.has(Word::requested_size)) block.requested_size = tables.histories[history->index].real_size;
  }
  tables.histories.clear();
  SnapshotFeatures& features = tables.snapshot.features;
  features.block_history = features.block_history || keys.has(Word::history);
  features.block_addresses = features.block_addresses || keys.has(Word::address);
  tables.snapshot.blocks.push_back(block);
  return slot_at(SlotKind::block, tables.snapshot.blocks.size() - 1);
}

// The blocks' addresses before torch 2.1, and its own sums before they were written.
void complete_segment(ReaderTables& tables, KeySet keys, SnapshotSegment& segment) {
  uint64_t address = segment.address;
  uint64_t requested = 0;
  for (uint32_t i = 0; i < segment.block_count; ++i) {
    SnapshotBlock& block = tables.snapshot.blocks[segment.first_block + i];
    if (!tables.snapshot.features.block_addresses) block.address = address;
    address += static_cast<uint64_t>(block.size);
    if (block.state != BlockState::inactive) requested += static_cast<uint64_t>(block.requested_size);
  }
  if (!keys.has(Word::requested_size)) segment.requested_size = static_cast<int64_t>(requested);
}

Slot add_segment(ReaderTables& tables, KeySet keys, std::span<const Slot> pairs) {
  SnapshotSegment segment;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Slot& value = pairs[i + 1];
    switch (key_at(pairs, i)) {
      case Word::device: segment.device = static_cast<int32_t>(size_or_zero(value)); break;
      case Word::address: segment.address = value.is_integer() ? value.bits : 0; break;
      case Word::total_size: segment.total_size = size_or_zero(value); break;
      case Word::allocated_size: segment.allocated_size = size_or_zero(value); break;
      case Word::active_size: segment.active_size = size_or_zero(value); break;
      case Word::requested_size: segment.requested_size = size_or_zero(value); break;
      case Word::stream: segment.stream = StreamId{value.is_integer() ? value.bits : 0}; break;
      case Word::segment_type:
        segment.is_large = text_or_none(value) == StringId{static_cast<uint32_t>(Word::large)};
        break;
      case Word::is_expandable: segment.is_expandable = truth_of(value); break;
      case Word::segment_pool_id: segment.pool = pool_of(tables, value); break;
      case Word::frames: segment.stack = stack_or_none(value); break;
      case Word::blocks:
        if (value.kind == SlotKind::blocks) {
          segment.first_block = value.index;
          segment.block_count = static_cast<uint32_t>(value.bits);
        }
        break;
      default: break;
    }
  }
  if (!keys.has(Word::blocks)) {
    ++tables.unreadable_segments;
    return Slot{};
  }
  complete_segment(tables, keys, segment);
  tables.snapshot.segments.push_back(segment);
  return slot_at(SlotKind::segment, tables.snapshot.segments.size() - 1);
}

Slot add_annotation(ReaderTables& tables, std::span<const Slot> pairs) {
  Annotation annotation;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Slot& value = pairs[i + 1];
    switch (key_at(pairs, i)) {
      case Word::name: annotation.name = text_or_none(value); break;
      case Word::stage:
        annotation.is_start = text_or_none(value) == StringId{static_cast<uint32_t>(Word::start)};
        break;
      case Word::device: annotation.device = static_cast<int32_t>(size_or_zero(value)); break;
      case Word::time_us: annotation.time_us = size_or_zero(value); break;
      default: break;
    }
  }
  tables.snapshot.annotations.push_back(annotation);
  return slot_at(SlotKind::annotation, tables.snapshot.annotations.size() - 1);
}

}  // namespace

KeySet keys_of(std::span<const Slot> pairs) {
  KeySet keys;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind == SlotKind::text) keys.add(StringId{pairs[i].index});
  }
  return keys;
}

RowKind row_kind_of(KeySet keys) {
  if (keys.has(Word::action)) return RowKind::event;
  if (keys.has(Word::line) && keys.has(Word::filename)) return RowKind::frame;
  if (keys.has(Word::total_size)) return RowKind::segment;
  if (keys.has(Word::real_size)) return RowKind::history;
  if (keys.has(Word::state) && keys.has(Word::size)) return RowKind::block;
  if (keys.has(Word::stage)) return RowKind::annotation;
  return RowKind::unknown;
}

Slot add_row(ReaderTables& tables, RowKind kind, KeySet keys, std::span<const Slot> pairs) {
  switch (kind) {
    case RowKind::frame: return add_frame(tables, pairs);
    case RowKind::event: return add_event(tables, pairs);
    case RowKind::segment: return add_segment(tables, keys, pairs);
    case RowKind::block: return add_block(tables, keys, pairs);
    case RowKind::history: return add_history(tables, pairs);
    case RowKind::annotation: return add_annotation(tables, pairs);
    case RowKind::unknown: break;
  }
  return Slot{};
}

StringId intern_text(ReaderTables& tables, std::string_view text) {
  // Buffers double as they grow, hence twice; an offset and two slots of the hash table come with each text.
  constexpr int64_t kOverheadBytes = 32;
  size_t before = tables.snapshot.strings.size();
  StringId id = tables.snapshot.strings.intern(text);
  if (tables.snapshot.strings.size() != before)
    tables.text_bytes += 2 * static_cast<int64_t>(text.size()) + kOverheadBytes;
  return id;
}

uint32_t intern_pair(ReaderTables& tables, PoolId pair) {
  auto [found, is_new] = tables.pair_ids.try_emplace(pair, static_cast<uint32_t>(tables.pairs.size()));
  if (is_new) tables.pairs.push_back(pair);
  return found->second;
}

int64_t ReaderTables::trace_bytes() const {
  int64_t bytes = 0;
  for (const std::unique_ptr<TraceBuilder>& trace : traces) bytes += trace->memory_bytes();
  return bytes;
}

int64_t ReaderTables::other_bytes() const {
  constexpr int64_t kMapNodeBytes = 80;
  int64_t bytes = stacks.memory_bytes();
  bytes += static_cast<int64_t>(snapshot.segments.capacity() * sizeof(SnapshotSegment) +
                                snapshot.blocks.capacity() * sizeof(SnapshotBlock) +
                                snapshot.annotations.capacity() * sizeof(Annotation)) +
           text_bytes +
           static_cast<int64_t>(pairs.capacity() * sizeof(PoolId) + loose_events.capacity() * sizeof(EventRow) +
                                histories.capacity() * sizeof(HistoryRow));
  bytes += static_cast<int64_t>(pair_ids.size()) * kMapNodeBytes;
  // At most a few thousand each (SnapshotMachine::kMaxKept).
  for (const std::vector<uint32_t>& list : trace_lists)
    bytes += static_cast<int64_t>(list.capacity() * sizeof(uint32_t));
  for (const std::vector<Slot>& map : maps) bytes += static_cast<int64_t>(map.capacity() * sizeof(Slot));
  return bytes;
}

}  // namespace oomscope
