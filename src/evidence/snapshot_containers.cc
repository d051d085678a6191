// SnapshotMachine, second half: what lists and dictionaries become. The idea is at the top of snapshot_machine.h.
#include <algorithm>
#include <utility>

#include "evidence/snapshot_machine.h"

namespace oomscope {

bool SnapshotMachine::make_from_mark(bool is_dict) {
  if (marks_.empty()) return tokens_.fail("mark-missing");
  size_t position = marks_.back();
  std::vector<Slot> items(stack_.begin() + static_cast<ptrdiff_t>(position) + 1, stack_.end());
  stack_.resize(position);
  marks_.pop_back();
  if (!push_builder(is_dict)) return false;
  if (is_dict) return close_dict(position, items);
  for (Slot item : items) {
    Slot frozen = freeze(item);
    append_item(builders_[stack_[position].index], frozen);
    if (error_.has_value()) return false;
  }
  return true;
}

bool SnapshotMachine::append_one() {
  size_t floor = marks_.empty() ? 0 : size_t{marks_.back()} + 1;
  if (stack_.size() < floor + 2) return tokens_.fail("append-without-list");
  Slot item = freeze(stack_.back());
  stack_.pop_back();
  Slot list = stack_.back();
  if (list.kind == SlotKind::list) {
    append_item(builders_[list.index], item);
  } else if (list.kind == SlotKind::dict || list.kind == SlotKind::mark) {
    return tokens_.fail("append-to-no-list");
  } else {
    ++tables_.skipped_items;
  }
  return !error_.has_value();
}

bool SnapshotMachine::append_from_mark() {
  if (marks_.empty() || marks_.back() == 0) return tokens_.fail("append-without-list");
  size_t position = marks_.back();
  Slot list = stack_[position - 1];
  if (list.kind == SlotKind::dict || list.kind == SlotKind::mark) return tokens_.fail("append-to-no-list");
  if (list.kind != SlotKind::list) {
    tables_.skipped_items += static_cast<int64_t>(stack_.size() - position - 1);
    return pop_mark();
  }
  for (size_t i = position + 1; i < stack_.size(); ++i) {
    Slot item = freeze(stack_[i]);
    append_item(builders_[list.index], item);
    if (error_.has_value()) return false;
  }
  stack_.resize(position);
  marks_.pop_back();
  return true;
}

bool SnapshotMachine::set_one() {
  size_t floor = marks_.empty() ? 0 : size_t{marks_.back()} + 1;
  if (stack_.size() < floor + 3) return tokens_.fail("set-item-without-dictionary");
  size_t position = stack_.size() - 3;
  Slot dict = stack_[position];
  if (dict.kind == SlotKind::list) return tokens_.fail("set-item-on-no-dictionary");
  Slot key = freeze(stack_[position + 1]);
  Slot value = freeze(stack_[position + 2]);
  stack_.resize(position + 1);
  if (dict.kind != SlotKind::dict) {
    ++tables_.skipped_items;
    return true;
  }
  Builder& builder = builders_[dict.index];
  builder.pairs.push_back(key);
  builder.pairs.push_back(value);
  builder_items_ += 2;
  return true;
}

bool SnapshotMachine::set_from_mark() {
  if (marks_.empty() || marks_.back() == 0) return tokens_.fail("set-item-without-dictionary");
  size_t mark = marks_.back();
  size_t position = mark - 1;
  SlotKind kind = stack_[position].kind;
  if (kind == SlotKind::list || kind == SlotKind::mark) return tokens_.fail("set-item-on-no-dictionary");
  if (kind != SlotKind::dict) {
    tables_.skipped_items += static_cast<int64_t>((stack_.size() - mark) / 2);
    return pop_mark();
  }
  if ((stack_.size() - mark - 1) % 2 != 0) return tokens_.fail("key-without-value");
  marks_.pop_back();  // first: what is around the dictionary decides what becomes of its values
  if (!close_dict(position, std::span(stack_).subspan(mark + 1))) return false;
  if (position < stack_.size()) stack_.resize(position + 1);
  return true;
}

// `pairs` join the dictionary at `position`. If they make it a row it is frozen at once, and if it lies first behind
// the mark of an open list, it moves there.
bool SnapshotMachine::close_dict(size_t position, std::span<Slot> pairs) {
  for (Slot& slot : pairs) slot = freeze(slot);
  uint32_t index = stack_[position].index;
  KeySet keys = keys_of(pairs);
  RowKind kind = builders_[index].pairs.empty() ? row_kind_of(keys) : RowKind::unknown;
  if (kind == RowKind::unknown) {
    Builder& builder = builders_[index];
    builder.pairs.insert(builder.pairs.end(), pairs.begin(), pairs.end());
    builder_items_ += static_cast<int64_t>(pairs.size());
    return true;
  }
  Slot row = add_row(tables_, kind, keys, pairs);
  if (builders_[index].has_memo) remember(builders_[index].memo_index, row, false);
  release(index);
  stack_[position] = row;
  if (row.kind == SlotKind::event) templates_.learn(tables_.loose_events[row.index], position);
  return join_list(position);
}

bool SnapshotMachine::join_list(size_t position) {
  if (position < 2 || stack_[position - 1].kind != SlotKind::mark || stack_[position - 2].kind != SlotKind::list) {
    return true;
  }
  joined_ = stack_[position];
  append_item(builders_[stack_[position - 2].index], joined_);
  stack_.resize(position);
  return !error_.has_value();
}

void SnapshotMachine::append_item(Builder& list, Slot item) {
  switch (item.kind) {
    case SlotKind::frame:
      if (list.content == ListContent::empty) list.content = ListContent::frames;
      if (list.content != ListContent::frames) break;
      list.items.push_back(item.index);
      ++builder_items_;
      return;
    case SlotKind::event: return append_event(list, item);
    case SlotKind::segment: return append_row(list, ListContent::segments, item.index);
    case SlotKind::block: return append_row(list, ListContent::blocks, item.index);
    case SlotKind::annotation: return append_row(list, ListContent::annotations, item.index);
    case SlotKind::history:
      if (list.content == ListContent::empty) list.first = item.index;  // newest first, and only that one counts
      list.content = ListContent::histories;
      return;
    case SlotKind::trace:
    case SlotKind::stack: return append_trace(list, item);
    case SlotKind::opaque: return;  // an event that could not be read, say; the others decide what the list is
    default:
      if (list.content == ListContent::empty) list.content = ListContent::other;
      if (list.content == ListContent::other) return;
      break;
  }
  ++tables_.skipped_items;
}

// A trace, or the empty list that a device without events has.
void SnapshotMachine::append_trace(Builder& list, Slot item) {
  bool is_trace = item.kind == SlotKind::trace || item.index == 0;
  if (list.content == ListContent::empty) list.content = is_trace ? ListContent::traces : ListContent::other;
  if (list.content == ListContent::other) return;
  if (list.content != ListContent::traces || !is_trace) {
    ++tables_.skipped_items;
    return;
  }
  if (list.items.size() >= kMaxTraces) {
    refuse_limit("devices", static_cast<int64_t>(kMaxTraces));
    return;
  }
  list.items.push_back(item.kind == SlotKind::trace ? item.index : ReaderTables::kNoTrace);
  ++builder_items_;
}

// Rows of a list lie one after another in their table, so a range stands for the list.
void SnapshotMachine::append_row(Builder& list, ListContent content, uint32_t index) {
  if (list.content == ListContent::empty) {
    list.content = content;
    list.first = index;
  }
  if (list.content != content || list.first + list.count != index) {
    ++tables_.skipped_items;
    return;
  }
  ++list.count;
}

void SnapshotMachine::append_event(Builder& list, Slot item) {
  if (list.content == ListContent::empty) {
    if (tables_.traces.size() >= kMaxTraces) {
      refuse_limit("event-lists", static_cast<int64_t>(kMaxTraces));
      return;
    }
    list.content = ListContent::events;
    list.first = static_cast<uint32_t>(tables_.traces.size());
    tables_.traces.push_back(std::make_unique<TraceBuilder>(options_.keeps_times));
  }
  if (list.content != ListContent::events || item.index >= tables_.loose_events.size()) {
    ++tables_.skipped_items;
    return;
  }
  TraceBuilder& trace = *tables_.traces[list.first];
  templates_.make_room(trace);
  trace.append(tables_.loose_events[item.index]);
  // Events are appended in the order in which they were decoded, so the last one empties the waiting room.
  if (size_t{item.index} + 1 == tables_.loose_events.size()) tables_.loose_events.clear();
}

Slot SnapshotMachine::freeze(Slot slot) {
  if (!slot.is_builder()) return slot;
  Builder& builder = builders_[slot.index];
  if (!builder.is_alive) return Slot{};
  Slot frozen = builder.is_dict ? freeze_dict(builder) : freeze_list(builder);
  if (builder.has_memo) remember(builder.memo_index, frozen, false);
  release(slot.index);
  return frozen;
}

Slot SnapshotMachine::freeze_list(Builder& list) {
  auto range = [&list](SlotKind kind) { return Slot{.kind = kind, .index = list.first, .bits = list.count}; };
  switch (list.content) {
    case ListContent::empty: return Slot{.kind = SlotKind::stack};
    case ListContent::frames:
      return Slot{.kind = SlotKind::stack, .index = static_cast<uint32_t>(tables_.stacks.intern_stack(list.items))};
    case ListContent::events: return range(SlotKind::trace);
    case ListContent::segments: return range(SlotKind::segments);
    case ListContent::blocks: return range(SlotKind::blocks);
    case ListContent::annotations: return range(SlotKind::annotations);
    case ListContent::histories: return range(SlotKind::histories);
    case ListContent::traces:
      if (tables_.trace_lists.size() >= kMaxKept || !only_dicts_around()) return Slot{};
      tables_.trace_lists.push_back(std::move(list.items));
      builder_items_ -= static_cast<int64_t>(tables_.trace_lists.back().size());
      list.items.clear();
      return Slot{.kind = SlotKind::traces, .index = static_cast<uint32_t>(tables_.trace_lists.size() - 1)};
    case ListContent::other: break;
  }
  return Slot{};
}

// The allocator's settings are dictionaries inside dictionaries; all others that have no row are nobody's.
Slot SnapshotMachine::freeze_dict(Builder& dict) {
  KeySet keys = keys_of(dict.pairs);
  RowKind kind = row_kind_of(keys);
  if (kind != RowKind::unknown) return add_row(tables_, kind, keys, dict.pairs);
  constexpr size_t kMaxMapSlots = 4096;
  bool is_kept = !dict.pairs.empty() && dict.pairs.size() <= kMaxMapSlots && tables_.maps.size() < kMaxKept;
  if (!is_kept || !only_dicts_around()) return Slot{};
  tables_.maps.push_back(dict.pairs);
  return Slot{.kind = SlotKind::map, .index = static_cast<uint32_t>(tables_.maps.size() - 1)};
}

bool SnapshotMachine::only_dicts_around() const {
  constexpr size_t kMaxDepth = 4;
  if (marks_.size() > kMaxDepth) return false;
  return std::ranges::all_of(marks_,
                             [this](uint32_t mark) { return mark > 0 && stack_[mark - 1].kind == SlotKind::dict; });
}

}  // namespace oomscope
