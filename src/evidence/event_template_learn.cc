// From one event's bytes to a template. The general path has read the event already, so the bytes are known to be
// well formed; here we only ask whether they have the usual shape.
#include <algorithm>
#include <string_view>

#include "evidence/event_template.h"
#include "pickle/load.h"
#include "pickle/opcode.h"

namespace oomscope {
namespace {

class Learner {
 public:
  Learner(const ReaderTables& tables, const MemoTable& memo, const EventRow& row, const uint8_t* begin,
          const uint8_t* end, EventTemplate& shape)
      : tables_(tables), memo_(memo), row_(row), cursor_(begin), piece_begin_(begin), end_(end), shape_(shape) {}

  bool learn() {
    bool starts = at(0, Opcode::empty_dict) && at(1, Opcode::memoize) && at(2, Opcode::mark);
    if (!starts) return false;
    shape_.memos.count = 1;  // the dictionary
    cursor_ += 3;
    while (cursor_ < end_ && !at(0, Opcode::setitems)) {
      StringId key{};
      if (!skip_text_get(key) || !learn_value(word_of(key))) return false;
    }
    if (!at(0, Opcode::setitems)) return false;
    ++cursor_;
    bool has_all = shape_.before[static_cast<size_t>(EventField::action)].length_bytes != 0 &&
                   shape_.before[static_cast<size_t>(EventField::address)].length_bytes != 0 &&
                   shape_.before[static_cast<size_t>(EventField::size)].length_bytes != 0;
    return has_all && cursor_ == end_ && end_piece(EventField::end);
  }

 private:
  [[nodiscard]] bool at(size_t ahead, Opcode opcode) const {
    return cursor_ + ahead < end_ && cursor_[ahead] == static_cast<uint8_t>(opcode);
  }

  bool learn_value(Word key) {
    switch (key) {
      case Word::action: return learn_action();
      case Word::addr:
      case Word::device_free: return end_piece(EventField::address) && skip_integer();
      case Word::size: return end_piece(EventField::size) && skip_integer();
      case Word::time_us: return end_piece(EventField::time) && skip_integer();
      case Word::stream: return skip_constant_integer();
      case Word::compile_context: return skip_constant_text(row_.compile_context);
      case Word::user_metadata: return skip_constant_text(row_.user_metadata);
      case Word::pool_id: return skip_pair();
      case Word::frames: return learn_frames();
      default: return false;
    }
  }

  // The bytes since the last field become the constant ones in front of `field`.
  bool end_piece(EventField field) {
    size_t length = static_cast<size_t>(cursor_ - piece_begin_);
    // A key twice, or in another order than any known writer's, is for the general path.
    size_t number = static_cast<size_t>(field);
    if (length == 0 || length > ConstantBytes::kMaxBytes || number < next_field_) return false;
    next_field_ = number + 1;
    ConstantBytes& piece = shape_.before[number];
    std::copy_n(piece_begin_, length, piece.bytes.begin());
    piece.ignored.fill(255);
    std::fill_n(piece.ignored.begin(), length, uint8_t{0});
    piece.length_bytes = static_cast<uint32_t>(length);
    piece_begin_ = cursor_;
    return true;
  }

  bool skip_text_get(StringId& text) {
    bool is_long = at(0, Opcode::long_binget);
    size_t length = is_long ? 5 : 2;
    if ((!is_long && !at(0, Opcode::binget)) || cursor_ + length > end_) return false;
    uint32_t index = is_long ? load_u32(cursor_ + 1) : cursor_[1];
    if (!memo_.has(index) || memo_.get(index).tag() != MemoTag::text) return false;
    text = StringId{memo_.get(index).index()};
    cursor_ += length;
    return true;
  }

  bool learn_action() {
    bool is_long = at(0, Opcode::long_binget);
    if (!is_long && !at(0, Opcode::binget)) return false;
    ++cursor_;
    if (!end_piece(EventField::action)) return false;
    shape_.is_action_long = is_long;
    cursor_ += is_long ? 4 : 1;
    piece_begin_ = cursor_;
    return cursor_ <= end_;
  }

  bool skip_integer() {
    bool skipped = skip_constant_integer();
    piece_begin_ = cursor_;
    return skipped;
  }

  bool skip_constant_integer() {
    if (at(0, Opcode::binint1)) {
      cursor_ += 2;
    } else if (at(0, Opcode::binint2)) {
      cursor_ += 3;
    } else if (at(0, Opcode::binint)) {
      cursor_ += 5;
    } else if (at(0, Opcode::long1) && cursor_ + 1 < end_ && cursor_[1] >= 1 && cursor_[1] <= 8) {
      cursor_ += 2 + cursor_[1];
    } else {
      return false;
    }
    return cursor_ <= end_;
  }

  bool remember(MemoTag tag, uint32_t index) {
    if (shape_.memos.count == EventMemos::kMost) return false;
    shape_.memos.entries[shape_.memos.count++] = MemoEntry::of(tag, index);
    return true;
  }

  bool skip_constant_text(StringId expected) {
    StringId text{};
    if (skip_text_get(text)) return text == expected;
    if (!at(0, Opcode::short_binunicode) || cursor_ + 2 > end_) return false;
    size_t length = cursor_[1];
    std::string_view written(reinterpret_cast<const char*>(cursor_ + 2), length);
    cursor_ += 2 + length;
    if (!at(0, Opcode::memoize) || tables_.snapshot.strings.text(expected) != written) return false;
    ++cursor_;
    return remember(MemoTag::text, static_cast<uint32_t>(expected));
  }

  bool skip_pair() {
    bool is_pair =
        skip_constant_integer() && skip_constant_integer() && at(0, Opcode::tuple2) && at(1, Opcode::memoize);
    // Which of two is the row's? Then the general path reads it.
    const auto is_of_pair = [](const MemoEntry& entry) { return entry.tag() == MemoTag::pair; };
    const auto& made = shape_.memos.entries;
    if (!is_pair || std::any_of(made.begin(), made.begin() + shape_.memos.count, is_of_pair)) return false;
    cursor_ += 2;
    auto found = tables_.pair_ids.find(row_.pool);
    return found != tables_.pair_ids.end() && remember(MemoTag::pair, found->second);
  }

  // Which opcodes the list has is the hot loop's business, but it must be the last value: an event in which a key
  // follows has no template.
  bool learn_frames() {
    if (!end_piece(EventField::frames)) return false;
    if (!skip_get()) {
      if (!at(0, Opcode::empty_list) || !at(1, Opcode::memoize)) return false;
      cursor_ += 2;
      bool has_mark = at(0, Opcode::mark);
      if (has_mark) ++cursor_;
      while (skip_get()) {
      }
      if (at(0, has_mark ? Opcode::appends : Opcode::append)) ++cursor_;
    }
    piece_begin_ = cursor_;
    return cursor_ + 1 == end_;
  }

  bool skip_get() {
    if (!at(0, Opcode::binget) && !at(0, Opcode::long_binget)) return false;
    cursor_ += at(0, Opcode::binget) ? 2 : 5;
    return cursor_ < end_;
  }

  const ReaderTables& tables_;
  const MemoTable& memo_;
  const EventRow& row_;
  const uint8_t* cursor_;
  const uint8_t* piece_begin_;
  const uint8_t* end_;
  EventTemplate& shape_;
  size_t next_field_ = 0;
};

}  // namespace

bool make_event_template(const ReaderTables& tables, const MemoTable& memo, const EventRow& row, const uint8_t* begin,
                         const uint8_t* end, EventTemplate& shape) {
  Learner learner(tables, memo, row, begin, end, shape);
  if (!learner.learn()) return false;
  shape.stream = row.stream;
  shape.compile_context = row.compile_context;
  shape.user_metadata = row.user_metadata;
  shape.pool = row.pool;
  shape.has_pool = row.has_pool;
  return true;
}

}  // namespace oomscope
