#include "evidence/event_template.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include "pickle/load.h"
#include "pickle/opcode.h"

namespace oomscope {
namespace {

constexpr uint8_t byte_of(Opcode opcode) { return static_cast<uint8_t>(opcode); }

#define OOM_ALWAYS_INLINE inline __attribute__((always_inline))

// Whether 16 bytes are as they must be. Without SSE2, which all x86-64 has, the compiler makes its own of it.
OOM_ALWAYS_INLINE bool matches_step(const uint8_t* cursor, const uint8_t* bytes, const uint8_t* ignored) {
#ifdef __SSE2__
  __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(cursor));
  __m128i wanted = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  __m128i any = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ignored));
  return _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(there, wanted), any)) == 0xffff;
#else
  uint64_t low = (load_u64(cursor) ^ load_u64(bytes)) & ~load_u64(ignored);
  uint64_t high = (load_u64(cursor + 8) ^ load_u64(bytes + 8)) & ~load_u64(ignored + 8);
  return (low | high) == 0;
#endif
}

// Behind the constant bytes in front of `field`, or nullptr.
OOM_ALWAYS_INLINE const uint8_t* skip_constant(const EventTemplate& shape, EventField field, const uint8_t* cursor) {
  const ConstantBytes& constant = shape.before[static_cast<size_t>(field)];
  size_t length = constant.length_bytes;
  if (length <= sizeof(uint64_t)) {
    uint64_t ignored = load_u64(constant.ignored.data());
    uint64_t differing = load_u64(cursor) ^ load_u64(constant.bytes.data());
    // A branch, which is foreseen: a conditional move would make all that follows wait for the comparison.
    if (__builtin_expect(static_cast<long>((differing | ignored) != ignored), 0) != 0) return nullptr;
    return cursor + length;
  }
  if (!matches_step(cursor, constant.bytes.data(), constant.ignored.data())) return nullptr;
  for (size_t at = ConstantBytes::kStep; at < length; at += ConstantBytes::kStep) {
    if (!matches_step(cursor + at, constant.bytes.data() + at, constant.ignored.data() + at)) return nullptr;
  }
  return cursor + length;
}

inline bool has_field(const EventTemplate& shape, EventField field) {
  return shape.before[static_cast<size_t>(field)].length_bytes != 0;
}

// nullptr: not an integer of at most 64 bits.
OOM_ALWAYS_INLINE const uint8_t* read_integer(const uint8_t* cursor, uint64_t& value) {
  uint8_t opcode = *cursor;
  if (opcode == byte_of(Opcode::long1)) {
    unsigned length = cursor[1];
    if (length - 1U > 7U) return nullptr;
    unsigned shift = 64 - 8 * length;
    value = static_cast<uint64_t>(static_cast<int64_t>(load_u64(cursor + 2) << shift) >> shift);
    return cursor + 2 + length;
  }
  // Sizes mix the three short forms at random: a table instead of branches that could not be predicted.
  constexpr std::array<uint64_t, 4> kMask = {0xffffffffU, 0xffU, 0, 0xffffU};  // BININT, BININT1, (L), BININT2
  constexpr std::array<uint8_t, 4> kLength = {5, 2, 0, 3};
  unsigned form = static_cast<unsigned>(opcode) - byte_of(Opcode::binint);
  if (form > 3 || kLength[form] == 0) return nullptr;
  value = load_u64(cursor + 1) & kMask[form];
  if (form == 0) value = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value)));
  return cursor + kLength[form];
}

}  // namespace

// A memo-get of a list that was read before, or a new list: empty, of one frame, or of several.
OOM_ALWAYS_INLINE const uint8_t* EventTemplates::match_frames(const Position& position, const uint8_t* cursor,
                                                              StackId& stack) {
  uint8_t opcode = *cursor;
  if (opcode == byte_of(Opcode::empty_list)) {
    if (cursor[1] != byte_of(Opcode::memoize)) return nullptr;
    cursor += 2;
    if (*cursor == byte_of(Opcode::mark)) {
      cursor = stack_bytes_.read(cursor + 1, position.end, stack);
    } else if (*cursor != byte_of(Opcode::setitems)) {
      cursor = stack_bytes_.read_single(cursor, position.end, stack);
    }
    return cursor;
  }
  bool is_long = opcode == byte_of(Opcode::long_binget);
  if (!is_long && opcode != byte_of(Opcode::binget)) return nullptr;
  uint32_t index = is_long ? load_u32(cursor + 1) : cursor[1];
  if (index >= position.memo.next()) return nullptr;
  const MemoEntry entry = position.memo.get(index);
  if (entry.tag() != MemoTag::stack) return nullptr;
  stack = StackId{entry.index()};
  return cursor + (is_long ? 5 : 2);
}

// A text that was read before; false if the memo has something else there.
bool EventTemplates::find_action(const Position& position, uint32_t memo_index) {
  if (memo_index >= position.memo.next()) return false;
  const MemoEntry entry = position.memo.get(memo_index);
  if (entry.tag() != MemoTag::text) return false;
  known_actions_[memo_index % known_actions_.size()] = {memo_index, action_of(StringId{entry.index()})};
  return true;
}

// One event into the next staged row. False: it does not match, and nothing but that unused row was written.
// Loads may pass the window's end by its slack, where zeros match nothing.
OOM_ALWAYS_INLINE bool EventTemplates::match(const EventTemplate& shape, Position& position) {
  size_t row = position.row;
  uint64_t value = 0;
  const uint8_t* cursor = skip_constant(shape, EventField::action, position.cursor);
  if (cursor == nullptr) return false;
  uint32_t action_index = shape.is_action_long ? load_u32(cursor) : *cursor;
  cursor += shape.is_action_long ? 4 : 1;
  if (action_index == KnownAction::kNone) return false;
  const KnownAction& known = known_actions_[action_index % known_actions_.size()];
  if (known.memo_index != action_index && !find_action(position, action_index)) return false;
  staged_.action[row] = known.action;

  cursor = skip_constant(shape, EventField::address, cursor);
  if (cursor == nullptr || (cursor = read_integer(cursor, value)) == nullptr) return false;
  staged_.addr[row] = value;
  cursor = skip_constant(shape, EventField::size, cursor);
  if (cursor == nullptr || (cursor = read_integer(cursor, value)) == nullptr) return false;
  staged_.size[row] = static_cast<int64_t>(value);
  value = 0;
  if (has_field(shape, EventField::time)) {
    cursor = skip_constant(shape, EventField::time, cursor);
    if (cursor == nullptr || (cursor = read_integer(cursor, value)) == nullptr) return false;
  }
  staged_.time_us[row] = static_cast<int64_t>(value);

  StackId stack = StackId::none;
  bool makes_list = false;
  if (has_field(shape, EventField::frames)) {
    cursor = skip_constant(shape, EventField::frames, cursor);
    if (cursor == nullptr) return false;
    makes_list = *cursor == byte_of(Opcode::empty_list);
    if ((cursor = match_frames(position, cursor, stack)) == nullptr) return false;
  }
  staged_.stack[row] = stack;
  cursor = skip_constant(shape, EventField::end, cursor);
  if (cursor == nullptr || cursor > position.end) return false;

  position.memo.add(shape.memos);
  if (makes_list) position.memo.add(MemoEntry::of(MemoTag::stack, static_cast<uint32_t>(stack)));
  staged_.lists[row / 64] |= uint64_t{makes_list} << (row % 64);
  position.cursor = cursor;
  ++position.row;
  return true;
}

// Fills the staged block from the window; moves `cursor` past what matched.
size_t EventTemplates::match_block(const EventTemplate& shape, const uint8_t*& cursor) {
  Position position{cursor, window_.end(), memo_.tail(), 0};
  staged_.lists.fill(0);
  staged_.first_memo = position.memo.next();
  while (position.row < StagedEvents::kCapacity) {
    if (static_cast<size_t>(position.end - position.cursor) < kMaxEventBytes) {
      window_.advance_to(position.cursor);
      (void)window_.ensure(kMaxEventBytes);
      position.cursor = window_.cursor();
      position.end = window_.end();
    }
    if (!match(shape, position)) break;
  }
  cursor = position.cursor;
  staged_.end_memo = position.memo.next();
  staged_.count = position.row;
  return position.row;
}

bool EventTemplates::run(TraceBuilder& trace) {
  constexpr size_t kMaxEvents = 65536;
  if (memo_overwrites_ != memo_.overwrites()) {
    // No writer sets a memo entry twice, but then what we know by index is void.
    memo_overwrites_ = memo_.overwrites();
    shapes_.clear();
    known_actions_.fill({});
    stack_bytes_.clear();
  }
  const uint8_t* cursor = window_.cursor() - 1;
  size_t matched = 0;
  size_t failed = 0;
  while (failed < shapes_.size() && matched < kMaxEvents) {
    const EventTemplate& shape = shapes_[current_];
    size_t count = match_block(shape, cursor);
    if (count > 0) {
      flush(shape, trace, trace.stream_index(shape.stream));
      matched += count;
      failed = 0;
    }
    if (count == StagedEvents::kCapacity) continue;
    // What follows a run of events is nearly always APPENDS, not another shape.
    if (cursor >= window_.end() || *cursor != byte_of(Opcode::empty_dict)) break;
    ++failed;
    current_ = current_ + 1 < shapes_.size() ? current_ + 1 : 0;
  }
  window_.advance_to(matched == 0 ? cursor + 1 : cursor);
  return matched > 0;
}

void EventTemplates::flush(const EventTemplate& shape, TraceBuilder& builder, uint32_t stream_index) {
  make_room(builder);
  Trace& trace = builder.trace();
  size_t before = trace.size_events();
  size_t count = staged_.count;
  auto append = [before, count](auto& column, const auto& staged) {
    column.resize(before + count);  // writes nothing: see PageAllocator
    std::memcpy(column.data() + before, staged.data(), count * sizeof(staged[0]));
  };
  trace.addr.append({staged_.addr.data(), count});
  trace.size.append({staged_.size.data(), count});
  if (builder.keeps_times()) append(trace.time_us, staged_.time_us);
  append(trace.stack, staged_.stack);
  append(trace.action, staged_.action);
  trace.stream_index.append(before, stream_index, count);
  trace.compile_context.append(before, shape.compile_context, count);
  trace.user_metadata.append(before, shape.user_metadata, count);
  if (shape.has_pool && trace.pool.empty()) trace.pool.assign(before, PoolId{});
  if (shape.has_pool || !trace.pool.empty()) trace.pool.insert(trace.pool.end(), count, shape.pool);
  memo_.add_run(shape.memos, {.first_index = staged_.first_memo,
                              .end_index = staged_.end_memo,
                              .first_event = static_cast<uint32_t>(before),
                              .lists = staged_.lists,
                              .stacks = &trace.stack});
  staged_.count = 0;
}

void EventTemplates::make_room(TraceBuilder& trace) {
  size_t events = trace.size_events();
  if (room_trace_ != &trace) {
    room_trace_ = &trace;
    room_offset_ = window_.offset();
  }
  const bool has_room = trace.room_events() >= StagedEvents::kCapacity;
  if (follow_) follow_(trace.trace(), !has_room);
  if (has_room) return;
  constexpr size_t kMinSample = 1024;
  size_t wanted = events * 2 + 64;
  int64_t total_bytes = window_.size_hint_bytes();
  uint64_t offset = window_.offset();
  if (events >= kMinSample && total_bytes > static_cast<int64_t>(offset) && offset > room_offset_) {
    // The rest of the file holds events as long as those so far, give or take; untouched room costs nothing.
    uint64_t rest = static_cast<uint64_t>(total_bytes) - offset;
    uint64_t per_event = std::max<uint64_t>((offset - room_offset_) / events, 24);
    wanted = events + std::max<size_t>(rest / per_event * 9 / 8, events / 2) + StagedEvents::kCapacity;
    wanted = std::min(wanted, static_cast<size_t>(max_memory_bytes_) / TraceBuilder::kBytesPerEvent);
  }
  trace.reserve(std::max(wanted, events + StagedEvents::kCapacity));
}

void EventTemplates::learn(const EventRow& row, size_t stack_position) {
  const uint8_t* begin = std::exchange(begin_, nullptr);
  if (begin == nullptr || begin_generation_ != window_.generation() || begin_position_ != stack_position) return;
  if (row.is_forced || memo_overwrites_ != memo_.overwrites()) return;
  EventTemplate shape;
  if (!make_event_template(tables_, memo_, row, begin, window_.cursor(), shape)) return;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i] == shape) return;
  }
  if (shapes_.size() < kMaxTemplates) {
    current_ = shapes_.size();
    shapes_.push_back(shape);
    return;
  }
  current_ = next_replaced_;
  shapes_[current_] = shape;
  next_replaced_ = (next_replaced_ + 1) % kMaxTemplates;
}

}  // namespace oomscope
