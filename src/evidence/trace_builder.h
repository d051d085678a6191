// TraceBuilder: appends events to the columns of one Trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "types/snapshot.h"

namespace oomscope {

// One event in full, on its way into the columns.
struct EventRow {
  Action action = Action::unknown;
  uint64_t addr = 0;
  int64_t size = 0;
  StreamId stream{};
  StackId stack = StackId::none;
  int64_t time_us = 0;
  PoolId pool;
  StringId compile_context = StringId::none;
  StringId user_metadata = StringId::none;
  bool has_pool = false;
  bool is_forced = false;
};

// Told of a trace that has grown or, `is_moving`, whose columns are about to move: see SnapshotReadOptions.
using FollowTrace = std::function<void(const Trace& trace, bool is_moving)>;

class TraceBuilder {
 public:
  explicit TraceBuilder(bool keeps_times = true) : keeps_times_(keeps_times) {}
  void append(const EventRow& row);
  // The index of `stream` in Trace::streams, added if it is new.
  uint32_t stream_index(StreamId stream);
  // Room for `events` in all columns; for the next kMostAtOnce it is enough whatever they are.
  void reserve(size_t events);
  [[nodiscard]] Trace& trace() { return trace_; }
  [[nodiscard]] size_t size_events() const { return trace_.action.size(); }
  // How many more it takes before a column that others look at moves.
  [[nodiscard]] size_t room_events() const {
    return std::min(trace_.action.capacity() - trace_.action.size(), trace_.addr.room());
  }
  // Of what is written: reserved room costs nothing until it is touched.
  [[nodiscard]] int64_t memory_bytes() const;
  [[nodiscard]] bool keeps_times() const { return keeps_times_; }
  static constexpr size_t kMostAtOnce = 256;
  static constexpr size_t kBytesPerEvent = 29;  // at most

 private:
  bool keeps_times_;
  Trace trace_;
  std::map<uint64_t, uint32_t> stream_indices_;  // ordered: hostile handles cannot make it slow
};

}  // namespace oomscope
