// Snapshot: what `torch.cuda.memory._dump_snapshot` (or an older `memory_snapshot()`) wrote, as plain columns.
//
// Source: c10/cuda/CUDACachingAllocator.cpp and torch/csrc/cuda/memory_snapshot.cpp, torch 1.13 to 2.13.
// The reader is src/evidence/snapshot_reader.h. All sizes in bytes, all times in microseconds of Unix time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/caveat.h"
#include "base/large_vector.h"
#include "types/ids.h"
#include "types/narrow_column.h"

namespace oomscope {

// Interned text. Id 0 is the empty string. Views stay valid as long as the table lives.
class StringTable {
 public:
  StringTable();
  StringId intern(std::string_view text);
  [[nodiscard]] std::string_view text(StringId id) const;
  [[nodiscard]] size_t size() const { return offsets_.size() - 1; }

 private:
  std::string bytes_;
  std::vector<uint64_t> offsets_;  // offsets_[id] .. offsets_[id + 1] in bytes_
  std::vector<uint32_t> slots_;    // open addressing over ids, power-of-two size; 0 = empty slot
};

// One level of a call stack. `line` is kept as written: it may be 0, or 2^64-1 where PyTorch knew none.
struct Frame {
  StringId name = StringId::none;
  StringId filename = StringId::none;
  uint64_t line = 0;
  bool operator==(const Frame&) const = default;
};

// Interned stacks, innermost frame first. Id 0 is the empty stack.
struct StackTable {
  std::vector<Frame> frames;              // distinct frames
  std::vector<uint32_t> frame_ids;        // all stacks one after another, indices into frames
  std::vector<uint32_t> starts = {0, 0};  // stack i is frame_ids[starts[i] .. starts[i + 1])
  [[nodiscard]] size_t size() const { return starts.size() - 1; }
};

enum class Action : uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,       // addr is the driver's free bytes (device_free), size the rounded request
  snapshot,  // size is the total of active bytes
  annotate,
  unknown,  // an action this version does not know; skipped by the model, counted in a caveat
};

// A column that most files leave constant: `values` is empty while every event has `constant`.
template <class T>
struct SparseColumn {
  T constant{};
  LargeVector<T> values;
  [[nodiscard]] T at(size_t event) const { return values.empty() ? constant : values[event]; }
  // `count` more events with `value`, behind `events_before`.
  void append(size_t events_before, T value, size_t count = 1) {
    if (values.empty()) {
      if (events_before == 0) constant = value;
      if (constant == value) return;
      values.assign(events_before, constant);
    }
    values.insert(values.end(), count, value);
  }
  bool operator==(const SparseColumn&) const = default;
};

// The events of one device, oldest first; all columns have the same length but for those that say when they are empty.
struct Trace {
  LargeVector<Action> action;
  AddressColumn addr;
  SizeColumn size;                      // requested bytes for alloc and free_*, else see Action
  SparseColumn<uint32_t> stream_index;  // into streams
  LargeVector<StackId> stack;
  LargeVector<int64_t> time_us;    // 0 where the file has none (torch < 2.2); empty where nobody wants them
  std::vector<StreamId> streams;   // distinct streams in order of first appearance
  std::vector<PoolId> pool;        // empty before torch 2.12, which does not record an event's pool
  std::vector<uint32_t> forced;    // events placed at a forced address (internal_metadata), ascending; mostly empty
  std::vector<uint32_t> restored;  // allocs that restored a checkpoint of a pool (CUDA graph trees), as forced
  SparseColumn<StringId> compile_context;
  SparseColumn<StringId> user_metadata;
  [[nodiscard]] size_t size_events() const { return action.size(); }
  [[nodiscard]] StreamId stream(size_t event) const { return streams[stream_index.at(event)]; }
  [[nodiscard]] int64_t time_at(size_t event) const { return time_us.empty() ? 0 : time_us[event]; }
};

enum class BlockState : uint8_t { active_allocated, active_pending_free, inactive };

struct SnapshotBlock {
  uint64_t address = 0;  // before torch 2.1 computed as the running sum from the segment's address
  int64_t size = 0;
  int64_t requested_size = 0;  // stale or 0 for inactive blocks; = size where the file has none (torch 1.13)
  BlockState state = BlockState::inactive;
  StackId stack = StackId::none;
};

// A segment: one cudaMalloc, or one maximal mapped run of an expandable segment. Its blocks are
// Snapshot::blocks[first_block .. first_block + block_count) in address order and sum to total_size.
struct SnapshotSegment {
  int32_t device = 0;
  uint64_t address = 0;
  int64_t total_size = 0;
  int64_t allocated_size = 0;
  int64_t active_size = 0;
  int64_t requested_size = 0;
  StreamId stream{};
  bool is_large = false;
  bool is_expandable = false;
  PoolId pool;
  StackId stack = StackId::none;
  uint32_t first_block = 0;
  uint32_t block_count = 0;
};

struct Annotation {
  static constexpr int32_t kAllDevices = -1;  // of a process, whatever devices it has
  StringId name = StringId::none;
  bool is_start = false;
  int32_t device = 0;
  int64_t time_us = 0;
};

// `allocator_settings` as written at dump time (torch 2.4 on). A member is empty where the file has no such key.
struct RecordedSettings {
  std::optional<std::string> conf;              // the last PYTORCH_CUDA_ALLOC_CONF string that was parsed
  std::optional<int64_t> max_split_size_bytes;  // -1 = unlimited
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::vector<int64_t> roundup_power2_divisions;  // 16 entries, or empty
};

// Keys of the file that tell the writer's vintage, since no torch version is recorded.
struct SnapshotFeatures {
  bool block_history = false;    // torch 1.13 and 2.0
  bool block_addresses = false;  // 2.1 on
  bool event_pool_id = false;    // 2.12 on
  bool host_segments = false;    // 2.13 on
};

struct Snapshot {
  StringTable strings;
  StackTable stacks;
  std::vector<SnapshotSegment> segments;  // as written: sorted by device, then address
  std::vector<SnapshotBlock> blocks;
  std::vector<Trace> traces;  // index = device ordinal; devices without events have empty columns
  std::optional<RecordedSettings> settings;
  std::vector<Annotation> annotations;
  SnapshotFeatures features;
  bool complete = true;  // false: the file was cut or damaged and this is what came before
  // Damage among the events, if there are any: the segments, which stand before them in the file, are of a later time
  // than the last event that is left. The settings stand behind the events.
  [[nodiscard]] bool events_were_cut() const { return !complete && !settings; }
  Caveats caveats;
};

// By stack: does one of its functions answer? Empty if none of any stack does. Each name is asked once.
[[nodiscard]] std::vector<bool> stacks_that_call(const Snapshot& snapshot,
                                                 bool (*is_wanted)(std::string_view function));

}  // namespace oomscope
