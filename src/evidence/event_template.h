// EventTemplates: the hot loop of the snapshot reader.
//
// The million dictionaries of a trace are written by one loop (torch/csrc/cuda/memory_snapshot.cpp), so their bytes
// repeat: keys are memo-gets of the same indices in the same order, and between them only action, address, size, time
// and stack differ. Decoding them opcode by opcode costs 0.4 us an event. Instead the general path (snapshot_machine.h)
// decodes an event, we look at its bytes, and what we find becomes a template: constant pieces, compared eight or
// sixteen bytes at a time, and fields between them.
//
//   } 94 ( j KEY j | action | j KEY 8a 06 .. | addr | h 15 | size | h 0a K 00 j KEY | time | j KEY 8c 03 N / A 94 ..
//   '-- piece 0 --'          '- piece 1 -'           piece 2        '- piece 3: the stream too -'
//
// What is constant in nearly all files (stream, compile context, user metadata, pool) is part of the pieces: an event
// that differs there matches another template, or goes the general path and becomes one. Any deviation at all (a
// FRAME opcode, a frame seen for the first time, an odd integer) ends the match before anything was changed, and the
// general path decodes that event from its first byte: the result is the same by construction, only slower.
//
// Stacks. A list of frames is a run of memo-gets; equal bytes mean equal stacks, as memo entries never change. We keep
// the bytes of each distinct run and guess which comes next: training repeats, so one of the two runs that followed
// this one last nearly always follows it again (99 of 100 times), and one comparison or two replace hashing.
//
// Cost: about 12 ns an event (AMD EPYC, 1,000,000 events of 88 bytes). Events are staged in blocks that stay in the
// first-level cache and are appended to the columns in one go. Limits: templates of at most 8 shapes; memory by the
// caller's budget, for which run() returns after 65,536 events.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "evidence/memo_table.h"
#include "evidence/snapshot_rows.h"
#include "evidence/snapshot_slot.h"
#include "evidence/stack_bytes.h"
#include "pickle/byte_window.h"

namespace oomscope {

// The fields of an event between constant bytes, in the order in which every version writes them.
enum class EventField : uint8_t { action, address, size, time, frames, end };

// Bytes that must be there as they are, in steps of 16; `ignored` has all bits set where a byte does not matter.
struct ConstantBytes {
  static constexpr size_t kStep = 16;
  static constexpr size_t kMaxBytes = 64;
  std::array<uint8_t, kMaxBytes> bytes{};
  std::array<uint8_t, kMaxBytes> ignored{};
  uint32_t length_bytes = 0;  // 0: no such piece
  bool operator==(const ConstantBytes&) const = default;
};

struct EventTemplate {
  std::array<ConstantBytes, 6> before{};  // by EventField: what comes before the field
  bool is_action_long = false;            // LONG_BINGET, not BINGET
  EventMemos memos;                       // of the MEMOIZE opcodes in the pieces
  // What the pieces say.
  StreamId stream{};
  StringId compile_context = StringId::none;
  StringId user_metadata = StringId::none;
  PoolId pool;
  bool has_pool = false;
  bool operator==(const EventTemplate&) const = default;
};

// Events on their way into the columns: all of one template and one trace.
struct StagedEvents {
  static constexpr size_t kCapacity = MemoRun::kMostEvents;
  static_assert(kCapacity <= TraceBuilder::kMostAtOnce);
  std::array<Action, kCapacity> action;
  std::array<uint64_t, kCapacity> addr;
  std::array<int64_t, kCapacity> size;
  std::array<int64_t, kCapacity> time_us;
  std::array<StackId, kCapacity> stack;
  std::array<uint64_t, kCapacity / 64> lists{};  // see MemoRun
  uint32_t first_memo = 0;                       // the memo's entries that they make are [first_memo, end_memo)
  uint32_t end_memo = 0;
  size_t count = 0;
};

class EventTemplates {
 public:
  EventTemplates(ByteWindow& window, ReaderTables& tables, MemoTable& memo, int64_t max_memory_bytes,
                 const FollowTrace& follow)
      : window_(window), tables_(tables), memo_(memo), max_memory_bytes_(max_memory_bytes), follow_(follow) {}

  // The machine is at an event's first byte, EMPTY_DICT, which the window has just passed.
  void begin_event(size_t stack_position) {
    begin_position_ = stack_position;
    begin_ = window_.cursor() - 1;
    begin_generation_ = window_.generation();
  }
  // Decodes events into `trace` while they match; the window then stands before the first byte of the next thing.
  // False: none matched, and the window is where it was.
  bool run(TraceBuilder& trace);
  // The general path has decoded `row`, the dictionary at `stack_position`, up to the window's cursor.
  void learn(const EventRow& row, size_t stack_position);
  // Room in the columns for some more events; tells who follows the trace.
  void make_room(TraceBuilder& trace);
  [[nodiscard]] int64_t memory_bytes() const { return stack_bytes_.memory_bytes(); }

 private:
  static constexpr size_t kMaxTemplates = 8;
  static constexpr size_t kMaxEventBytes = 4096;

  // Where the next event of match() goes, held in registers while a block is filled.
  struct Position {
    const uint8_t* cursor;
    const uint8_t* end;  // of the window
    MemoTable::Tail memo;
    size_t row;
  };
  // A trace has some eight actions, and its events name them by their place in the memo.
  struct KnownAction {
    static constexpr uint32_t kNone = 0xffffffff;  // no memo is that long
    uint32_t memo_index = kNone;
    Action action = Action::unknown;
  };
  bool match(const EventTemplate& shape, Position& position);
  [[gnu::noinline]] bool find_action(const Position& position, uint32_t memo_index);
  const uint8_t* match_frames(const Position& position, const uint8_t* cursor, StackId& stack);
  size_t match_block(const EventTemplate& shape, const uint8_t*& cursor);
  void flush(const EventTemplate& shape, TraceBuilder& trace, uint32_t stream_index);

  ByteWindow& window_;
  ReaderTables& tables_;
  MemoTable& memo_;
  int64_t max_memory_bytes_;
  FollowTrace follow_;
  StackBytes stack_bytes_{tables_, memo_};
  std::vector<EventTemplate> shapes_;
  size_t current_ = 0;
  size_t next_replaced_ = 0;
  std::array<KnownAction, 16> known_actions_{};
  StagedEvents staged_{};
  const uint8_t* begin_ = nullptr;
  uint64_t begin_generation_ = 0;
  size_t begin_position_ = 0;
  uint64_t memo_overwrites_ = 0;
  const TraceBuilder* room_trace_ = nullptr;  // whose first event was at room_offset_
  uint64_t room_offset_ = 0;
};

// A template of the event in [begin, end), which the general path read as `row`. False: its shape has no template.
bool make_event_template(const ReaderTables& tables, const MemoTable& memo, const EventRow& row, const uint8_t* begin,
                         const uint8_t* end, EventTemplate& shape);

}  // namespace oomscope
