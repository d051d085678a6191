#include "evidence/snapshot_machine.h"

#include <algorithm>
#include <string>
#include <utility>

namespace oomscope {

SnapshotMachine::SnapshotMachine(ByteWindow& window, ReaderTables& tables, const MachineOptions& options)
    : window_(window),
      tables_(tables),
      options_(options),
      tokens_(window),
      templates_(window, tables, memo_, options.max_memory_bytes, options.follow) {}

Result<Done> SnapshotMachine::run() {
  Token token;
  uint64_t generation = window_.generation();
  while (!stopped_) {
    if (!tokens_.next(token) || !apply(token)) break;
    if (window_.generation() != generation) {
      generation = window_.generation();
      if (!check_memory()) break;
    }
  }
  if (tokens_.refusal().has_value()) return *tokens_.refusal();
  if (error_.has_value()) return *error_;
  return Done{};
}

bool SnapshotMachine::apply(const Token& token) {
  // TorchScript's pickler memoises after SETITEMS, when the row may have left the stack already.
  Slot joined = std::exchange(joined_, Slot{.kind = SlotKind::mark});
  bool is_put = token.kind == TokenKind::put || token.kind == TokenKind::memoize;
  if (is_put && joined.kind != SlotKind::mark) {
    uint64_t index = token.kind == TokenKind::put ? token.bits : memo_.next_index();
    return check_memo_index(index) && (remember(static_cast<uint32_t>(index), joined, true), true);
  }
  switch (token.kind) {
    case TokenKind::integer:
      return push(Slot{.kind = SlotKind::integer,
                       .is_unsigned = !token.is_negative && token.bits > static_cast<uint64_t>(INT64_MAX),
                       .bits = token.bits});
    case TokenKind::real: return push(Slot{.kind = SlotKind::real, .bits = token.bits});
    case TokenKind::none: return push(Slot{.kind = SlotKind::none});
    case TokenKind::boolean: return push(Slot{.kind = SlotKind::boolean, .bits = token.bits});
    case TokenKind::text:
      return push(Slot{.kind = SlotKind::text, .index = static_cast<uint32_t>(intern_text(tables_, token.text))});
    case TokenKind::opaque:
    case TokenKind::empty_set: return push(Slot{});
    case TokenKind::mark:
      marks_.push_back(static_cast<uint32_t>(stack_.size()));
      return push(Slot{.kind = SlotKind::mark});
    case TokenKind::get: return get(token.bits);
    case TokenKind::put: return memoize(token.bits);
    case TokenKind::memoize: return memoize(memo_.next_index());
    case TokenKind::ignored: return true;
    case TokenKind::stop: stopped_ = true; return true;
    default: return apply_to_container(token);
  }
}

bool SnapshotMachine::apply_to_container(const Token& token) {
  switch (token.kind) {
    case TokenKind::empty_list: return push_builder(false);
    case TokenKind::empty_dict: return try_template() || push_builder(true);
    case TokenKind::tuple: return make_tuple(static_cast<size_t>(token.bits), false);
    case TokenKind::tuple_from_mark:
      if (marks_.empty()) return tokens_.fail("mark-missing");
      return make_tuple(stack_.size() - marks_.back() - 1, true);
    case TokenKind::list_from_mark: return make_from_mark(false);
    case TokenKind::dict_from_mark: return make_from_mark(true);
    case TokenKind::frozenset_from_mark: return pop_mark() && push(Slot{});
    case TokenKind::append: return append_one();
    case TokenKind::appends: return append_from_mark();
    case TokenKind::setitem: return set_one();
    case TokenKind::setitems: return set_from_mark();
    case TokenKind::additems:
    case TokenKind::pop_mark: return pop_mark();
    case TokenKind::pop: return pop();
    case TokenKind::dup: {
      if (stack_.empty() || stack_.back().kind == SlotKind::mark) return tokens_.fail("nothing-there");
      Slot copy = stack_.back();
      return push(copy.is_builder() ? Slot{} : copy);
    }
    default: return tokens_.fail("out-of-place");
  }
}

// At a dictionary's start, in a list that has events already.
bool SnapshotMachine::try_template() {
  size_t size = stack_.size();
  if (!options_.use_template || size < 2 || stack_[size - 1].kind != SlotKind::mark) return false;
  if (stack_[size - 2].kind != SlotKind::list) return false;
  const Builder& list = builders_[stack_[size - 2].index];
  if (list.content != ListContent::events) return false;
  if (templates_.run(*tables_.traces[list.first])) {
    joined_ = Slot{};
    return true;
  }
  templates_.begin_event(size);
  return false;
}

bool SnapshotMachine::refuse_limit(const char* what, int64_t limit) {
  error_ = Error{"snapshot-too-large",
                 std::string("error.too-many.") + what,
                 "",
                 "error.too-many.hint",
                 {{"limit", std::to_string(limit)}, {"byte", std::to_string(tokens_.token_offset_bytes())}}};
  return false;
}

// Called once a window (256 KiB): no opcode adds more than some dozen bytes per byte of its own, memo indices apart.
// Growing a table holds the old one while it copies, so the small ones together may have half of the limit; a trace
// grows one column at a time, and three quarters leave room for that.
bool SnapshotMachine::check_memory() {
  int64_t small = tables_.other_bytes() + memo_.memory_bytes() + templates_.memory_bytes() +
                  static_cast<int64_t>(stack_.capacity() * sizeof(Slot) + marks_.capacity() * sizeof(uint32_t) +
                                       builders_.capacity() * sizeof(Builder) + boxed_.capacity() * sizeof(Slot) +
                                       free_builders_.capacity() * sizeof(uint32_t)) +
                  builder_items_ * static_cast<int64_t>(2 * sizeof(Slot));
  int64_t limit = options_.max_memory_bytes;
  if (small <= limit / 2 && small + tables_.trace_bytes() <= limit / 4 * 3) return true;
  return refuse_limit("bytes", limit);
}

bool SnapshotMachine::push(Slot slot) {
  if (stack_.size() >= kMaxStack) return refuse_limit("open-values", static_cast<int64_t>(kMaxStack));
  stack_.push_back(slot);
  return true;
}

bool SnapshotMachine::push_builder(bool is_dict) {
  if (free_builders_.empty()) {
    free_builders_.push_back(static_cast<uint32_t>(builders_.size()));
    builders_.emplace_back();
  }
  uint32_t index = free_builders_.back();
  Builder& builder = builders_[index];
  builder.is_alive = true;
  builder.is_dict = is_dict;
  builder.has_memo = false;
  builder.content = ListContent::empty;
  builder.first = 0;
  builder.count = 0;
  builder.stack_position = static_cast<uint32_t>(stack_.size());
  if (!push(Slot{.kind = is_dict ? SlotKind::dict : SlotKind::list, .index = index})) return false;
  free_builders_.pop_back();
  return true;
}

void SnapshotMachine::release(uint32_t builder_index) {
  constexpr size_t kKeptCapacity = 256;
  Builder& builder = builders_[builder_index];
  if (!builder.is_alive) return;
  builder_items_ -= static_cast<int64_t>(builder.items.size() + builder.pairs.size());
  builder.is_alive = false;
  builder.items.clear();
  builder.pairs.clear();
  if (builder.items.capacity() > kKeptCapacity) builder.items.shrink_to_fit();
  if (builder.pairs.capacity() > kKeptCapacity) builder.pairs.shrink_to_fit();
  free_builders_.push_back(builder_index);
}

bool SnapshotMachine::pop() {
  if (stack_.empty()) return tokens_.fail("nothing-there");
  if (stack_.back().kind == SlotKind::mark) return pop_mark();
  if (stack_.back().is_builder()) release(stack_.back().index);
  stack_.pop_back();
  return true;
}

// Drops the last mark and what lies above it.
bool SnapshotMachine::pop_mark() {
  if (marks_.empty()) return tokens_.fail("mark-missing");
  size_t position = marks_.back();
  for (size_t i = position + 1; i < stack_.size(); ++i) {
    if (stack_[i].is_builder()) release(stack_[i].index);
  }
  stack_.resize(position);
  marks_.pop_back();
  return true;
}

void SnapshotMachine::remember(uint32_t memo_index, Slot slot, bool is_new) {
  MemoEntry entry;
  switch (slot.kind) {
    case SlotKind::text: entry = MemoEntry::of(MemoTag::text, slot.index); break;
    case SlotKind::frame: entry = MemoEntry::of(MemoTag::frame, slot.index); break;
    case SlotKind::stack: entry = MemoEntry::of(MemoTag::stack, slot.index); break;
    case SlotKind::pair: entry = MemoEntry::of(MemoTag::pair, slot.index); break;
    case SlotKind::list:
    case SlotKind::dict: entry = MemoEntry::of(MemoTag::building, slot.index); break;
    case SlotKind::none:
    case SlotKind::boolean:
    case SlotKind::integer:
    case SlotKind::real:
    case SlotKind::trace:
    case SlotKind::traces:
    case SlotKind::map:
      entry = MemoEntry::of(MemoTag::boxed, static_cast<uint32_t>(boxed_.size()));
      boxed_.push_back(slot);
      break;
    // A row belongs to one list only, so a second reference to it has no meaning for a snapshot.
    default: break;
  }
  if (is_new) {
    memo_.put(memo_index, entry);
  } else {
    if (memo_.get(memo_index).tag() == MemoTag::building) memo_.complete(memo_index, entry);
  }
}

bool SnapshotMachine::check_memo_index(uint64_t index) {
  // Every memoised object took at least a byte of the file, so a larger index is no numbering of objects.
  if (index > tokens_.token_offset_bytes() + 1024) {
    return tokens_.fail("memo-too-large", {{"index", std::to_string(index)}});
  }
  // The first change of an entry writes all of them down.
  const uint64_t entries = std::max<uint64_t>(index + 1, index < memo_.next_index() ? memo_.next_index() : 0);
  if (static_cast<int64_t>(entries * sizeof(uint32_t)) > options_.max_memory_bytes / 4) {
    return refuse_limit("memo-bytes", options_.max_memory_bytes / 4);
  }
  return true;
}

bool SnapshotMachine::memoize(uint64_t index) {
  if (stack_.empty() || stack_.back().kind == SlotKind::mark) return tokens_.fail("nothing-there");
  if (!check_memo_index(index)) return false;
  Slot top = stack_.back();
  remember(static_cast<uint32_t>(index), top, true);
  if (top.is_builder()) {
    builders_[top.index].has_memo = true;
    builders_[top.index].memo_index = static_cast<uint32_t>(index);
  }
  return true;
}

bool SnapshotMachine::get(uint64_t index) {
  if (!memo_.has(index)) return tokens_.fail("memo-unset", {{"index", std::to_string(index)}});
  MemoEntry entry = memo_.get(static_cast<uint32_t>(index));
  switch (entry.tag()) {
    case MemoTag::opaque: return push(Slot{});
    case MemoTag::text: return push(Slot{.kind = SlotKind::text, .index = entry.index()});
    case MemoTag::frame: return push(Slot{.kind = SlotKind::frame, .index = entry.index()});
    case MemoTag::stack: return push(Slot{.kind = SlotKind::stack, .index = entry.index()});
    case MemoTag::pair: return push(Slot{.kind = SlotKind::pair, .index = entry.index()});
    case MemoTag::boxed: return push(boxed_[entry.index()]);
    case MemoTag::building: return get_building(static_cast<uint32_t>(index), entry.index());
  }
  return push(Slot{});
}

bool SnapshotMachine::get_building(uint32_t memo_index, uint32_t builder_index) {
  const Builder& builder = builders_[builder_index];
  size_t position = builder.stack_position;
  bool is_on_stack = builder.is_alive && builder.has_memo && builder.memo_index == memo_index &&
                     position < stack_.size() && stack_[position].is_builder() &&
                     stack_[position].index == builder_index;
  bool is_being_filled = position + 1 < stack_.size() && stack_[position + 1].kind == SlotKind::mark;
  if (!is_on_stack || is_being_filled) return push(Slot{});
  Slot frozen = freeze(stack_[position]);
  stack_[position] = frozen;
  // Rows are in one list only; see remember().
  return push(memo_.get(memo_index).tag() == MemoTag::opaque ? Slot{} : frozen);
}

// The top `count` values as one; with `drop_mark` the mark below them goes too.
bool SnapshotMachine::make_tuple(size_t count, bool drop_mark) {
  size_t floor = marks_.empty() ? 0 : size_t{marks_.back()} + 1;
  if (stack_.size() < floor + count) return tokens_.fail("tuple-too-long");
  size_t first = stack_.size() - count;
  Slot tuple;
  if (count == 2 && stack_[first].is_integer() && stack_[first + 1].is_integer()) {
    uint32_t id = intern_pair(tables_, PoolId{stack_[first].bits, stack_[first + 1].bits});
    tuple = Slot{.kind = SlotKind::pair, .index = id};
  }
  for (size_t i = first; i < stack_.size(); ++i) {
    if (stack_[i].is_builder()) release(stack_[i].index);
  }
  stack_.resize(drop_mark ? first - 1 : first);
  if (drop_mark) marks_.pop_back();
  return push(tuple);
}

}  // namespace oomscope
