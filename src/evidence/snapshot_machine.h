// SnapshotMachine: runs a pickle's opcodes over a stack of slots and turns dictionaries into rows as they close.
//
// Pickle is a stack language, read bottom-up: a dictionary's pairs come before the opcode that makes them one. The
// obvious reader builds the tree of objects and walks it afterwards, which for a million events costs seconds and
// gigabytes. Here a dictionary is recognised by its keys at SETITEMS, becomes a row of a table at once, and where it
// lies in a list that is being filled, joins that list and leaves the stack: the stack stays a dozen slots deep.
//
//   opcodes      ] ( } ( 'action' 'alloc' 'addr' 4096 ... u        } ( 'action' ... u        e
//   stack        L (                                 [event]                     [event]     L -> trace 0
//                                                       '--> columns of trace 0     '--> "
//
// Containers are builders until something consumes them (SETITEMS, APPENDS, a tuple, or a memo-get of one that lies
// finished on the stack), which freezes them: a list of frames becomes a StackId, a list of blocks a range. The memo
// then points to the frozen value, so what is shared stays shared and nothing is ever expanded. A container that is
// fetched while it is still being filled contains itself; it reads as opaque, so no cycle can arise.
//
// Cost: about 0.3 us an event on this path; the hot loop for repeated events is src/evidence/event_template.h.
// Bounds: stack depth, devices, memo indices and total memory; each refusal names its limit.
// Left out: dictionaries that nobody asked for are dropped with their contents; sets and large integers are opaque.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "evidence/event_template.h"
#include "evidence/memo_table.h"
#include "evidence/snapshot_rows.h"
#include "evidence/snapshot_slot.h"
#include "pickle/byte_window.h"
#include "pickle/token_reader.h"
#include "types/limits.h"

namespace oomscope {

enum class ListContent : uint8_t { empty, frames, events, segments, blocks, histories, annotations, traces, other };

// A list or dictionary that may still grow.
struct Builder {
  bool is_alive = false;
  bool is_dict = false;
  bool has_memo = false;
  ListContent content = ListContent::empty;
  uint32_t memo_index = 0;
  uint32_t stack_position = 0;
  uint32_t first = 0;           // lists of rows: index of the first
  uint32_t count = 0;           // lists of rows: how many
  std::vector<uint32_t> items;  // lists of frames or traces
  std::vector<Slot> pairs;      // dictionaries: key, value, key, value ...
};

struct MachineOptions {
  int64_t max_memory_bytes = 0;
  bool use_template = true;
  bool keeps_times = true;
  FollowTrace follow = {};
};

class SnapshotMachine {
 public:
  SnapshotMachine(ByteWindow& window, ReaderTables& tables, const MachineOptions& options);

  // Runs to STOP or to the damage. An Error only where going on would be wrong (execution, limits).
  Result<Done> run();
  [[nodiscard]] const std::optional<Damage>& damage() const { return tokens_.damage(); }
  [[nodiscard]] int64_t cut_texts() const { return tokens_.cut_texts(); }
  // The value of the whole pickle; after damage, what was begun is closed first (snapshot_salvage.cc).
  // For a dictionary `pairs` has its keys and values.
  struct Top {
    Slot slot;
    std::vector<Slot> pairs;
  };
  Top take_top();

  static constexpr size_t kMaxStack = size_t{1} << 22;
  static constexpr size_t kMaxTraces = kMaxDevices;
  static constexpr size_t kMaxKept = 4096;  // dictionaries of settings, lists of traces: a snapshot has three

 private:
  bool apply(const Token& token);
  bool apply_to_container(const Token& token);
  bool push(Slot slot);
  bool push_builder(bool is_dict);
  bool pop();
  bool pop_mark();
  bool check_memo_index(uint64_t index);
  bool memoize(uint64_t index);
  bool get(uint64_t index);
  bool get_building(uint32_t memo_index, uint32_t builder_index);
  bool make_tuple(size_t count, bool drop_mark);
  bool make_from_mark(bool is_dict);
  bool append_one();
  bool append_from_mark();
  bool set_one();
  bool set_from_mark();
  bool close_dict(size_t position, std::span<Slot> pairs);
  bool join_list(size_t position);
  void append_item(Builder& list, Slot item);
  void append_trace(Builder& list, Slot item);
  void append_row(Builder& list, ListContent content, uint32_t index);
  void append_event(Builder& list, Slot item);
  Slot freeze(Slot slot);
  Slot freeze_list(Builder& list);
  Slot freeze_dict(Builder& dict);
  void release(uint32_t builder_index);
  void remember(uint32_t memo_index, Slot slot, bool is_new);
  [[nodiscard]] bool only_dicts_around() const;
  bool refuse_limit(const char* what, int64_t limit);
  bool check_memory();
  bool try_template();
  void close_unfinished();
  void fold_last_item(size_t floor, bool in_list);

  ByteWindow& window_;
  ReaderTables& tables_;
  MachineOptions options_;
  TokenReader tokens_;
  EventTemplates templates_;
  std::vector<Slot> stack_;
  std::vector<uint32_t> marks_;  // positions of the marks on the stack
  std::vector<Builder> builders_;
  std::vector<uint32_t> free_builders_;
  std::vector<Slot> boxed_;
  MemoTable memo_;
  int64_t builder_items_ = 0;
  Slot joined_{.kind = SlotKind::mark};  // the row that the last opcode moved into its list; a mark: none
  std::optional<Error> error_;
  bool stopped_ = false;
};

}  // namespace oomscope
