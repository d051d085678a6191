// SnapshotBuilder: a small recording, written down event by event.
//
//   SnapshotBuilder b;
//   b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).free(kA, 5 * kMiB);
//   b.segment(kA, {{.size = 20 * kMiB}});         // the final segments, of which the last block is free here
//   const Snapshot snapshot = b.build();
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "types/snapshot.h"

namespace oomscope {

struct FinalBlock {
  int64_t size = 0;
  int64_t requested = 0;
  BlockState state = BlockState::inactive;
};

inline FinalBlock live_block(int64_t size, int64_t requested = 0) {
  return {.size = size, .requested = requested == 0 ? size : requested, .state = BlockState::active_allocated};
}

struct FinalSegmentOptions {
  bool expandable = false;
  StreamId stream{};
  PoolId pool = {};
};

class SnapshotBuilder {
 public:
  // Events and segments from here on are of this device.
  SnapshotBuilder& device(int32_t device) {
    device_ = device;
    return *this;
  }
  // Events from here on are of this stream, pool (from torch 2.12 on), stack.
  SnapshotBuilder& stream(uint64_t stream) {
    stream_ = StreamId{stream};
    return *this;
  }
  SnapshotBuilder& pools_recorded(PoolId pool = {}) {
    has_pools_ = true;
    pool_ = pool;
    return *this;
  }
  SnapshotBuilder& called_from(std::string_view function) {
    const Frame frame{.name = snapshot_.strings.intern(function), .filename = StringId::none, .line = 1};
    snapshot_.stacks.frames.push_back(frame);
    snapshot_.stacks.frame_ids.push_back(static_cast<uint32_t>(snapshot_.stacks.frames.size() - 1));
    snapshot_.stacks.starts.push_back(static_cast<uint32_t>(snapshot_.stacks.frame_ids.size()));
    stack_ = StackId{static_cast<uint32_t>(snapshot_.stacks.size() - 1)};
    return *this;
  }
  // A Python stack, innermost first: {"torch/nn/functional.py", 12, "linear"}, …
  struct PythonFrame {
    std::string_view file;
    uint64_t line;
    std::string_view name;
  };
  // Equal stacks are one, as the reader has them.
  SnapshotBuilder& python(const std::vector<PythonFrame>& frames) {
    StackTable& stacks = snapshot_.stacks;
    std::vector<uint32_t> ids;
    for (const PythonFrame& frame : frames) {
      const Frame made{.name = snapshot_.strings.intern(frame.name),
                       .filename = snapshot_.strings.intern(frame.file),
                       .line = frame.line};
      const auto found = std::find(stacks.frames.begin(), stacks.frames.end(), made);
      ids.push_back(static_cast<uint32_t>(found - stacks.frames.begin()));
      if (found == stacks.frames.end()) stacks.frames.push_back(made);
    }
    for (size_t stack = 1; stack < stacks.size(); ++stack) {
      const auto begin = stacks.frame_ids.begin() + stacks.starts[stack];
      const auto end = stacks.frame_ids.begin() + stacks.starts[stack + 1];
      if (!std::equal(begin, end, ids.begin(), ids.end())) continue;
      stack_ = StackId{static_cast<uint32_t>(stack)};
      return *this;
    }
    stacks.frame_ids.insert(stacks.frame_ids.end(), ids.begin(), ids.end());
    stacks.starts.push_back(static_cast<uint32_t>(stacks.frame_ids.size()));
    stack_ = StackId{static_cast<uint32_t>(stacks.size() - 1)};
    return *this;
  }
  SnapshotBuilder& called_from_nowhere() {
    stack_ = StackId::none;
    return *this;
  }

  SnapshotBuilder& alloc(uint64_t address, int64_t size) { return add(Action::alloc, address, size); }
  SnapshotBuilder& free_requested(uint64_t address, int64_t size) { return add(Action::free_requested, address, size); }
  SnapshotBuilder& free_completed(uint64_t address, int64_t size) { return add(Action::free_completed, address, size); }
  SnapshotBuilder& free(uint64_t address, int64_t size) {
    return free_requested(address, size).free_completed(address, size);
  }
  SnapshotBuilder& segment_alloc(uint64_t address, int64_t size) { return add(Action::segment_alloc, address, size); }
  SnapshotBuilder& segment_free(uint64_t address, int64_t size) { return add(Action::segment_free, address, size); }
  SnapshotBuilder& segment_map(uint64_t address, int64_t size) { return add(Action::segment_map, address, size); }
  SnapshotBuilder& segment_unmap(uint64_t address, int64_t size) { return add(Action::segment_unmap, address, size); }
  SnapshotBuilder& oom(int64_t rounded_size, uint64_t device_free = uint64_t{1} << 40) {
    return add(Action::oom, device_free, rounded_size);
  }

  // A final segment; its pool is small if it has 2 MiB or less.
  SnapshotBuilder& segment(uint64_t address, const std::vector<FinalBlock>& blocks,
                           const FinalSegmentOptions& options = {}) {
    SnapshotSegment segment;
    segment.device = device_;
    segment.address = address;
    segment.stream = options.stream;
    segment.pool = options.pool;
    segment.is_expandable = options.expandable;
    segment.first_block = static_cast<uint32_t>(snapshot_.blocks.size());
    segment.block_count = static_cast<uint32_t>(blocks.size());
    for (const FinalBlock& block : blocks) {
      snapshot_.blocks.push_back(SnapshotBlock{.address = address + static_cast<uint64_t>(segment.total_size),
                                               .size = block.size,
                                               .requested_size = block.requested,
                                               .state = block.state,
                                               .stack = StackId::none});
      segment.total_size += block.size;
      if (block.state == BlockState::active_allocated) segment.allocated_size += block.size;
      if (block.state != BlockState::inactive) segment.active_size += block.size;
      if (block.state != BlockState::inactive) segment.requested_size += block.requested;
    }
    segment.is_large = segment.total_size > (int64_t{2} << 20);
    snapshot_.segments.push_back(segment);
    return *this;
  }

  SnapshotBuilder& settings(const RecordedSettings& settings) {
    snapshot_.settings = settings;
    return *this;
  }
  SnapshotBuilder& conf(const std::string& conf) {
    RecordedSettings recorded;
    recorded.conf = conf;
    return settings(recorded);
  }

  [[nodiscard]] Snapshot build() {
    std::stable_sort(snapshot_.segments.begin(), snapshot_.segments.end(),
                     [](const SnapshotSegment& a, const SnapshotSegment& b) {
                       return std::pair(a.device, a.address) < std::pair(b.device, b.address);
                     });
    snapshot_.features.block_addresses = true;
    if (!snapshot_.settings) conf("");
    return std::move(snapshot_);
  }

 private:
  SnapshotBuilder& add(Action action, uint64_t address, int64_t size) {
    if (snapshot_.traces.size() <= static_cast<size_t>(device_)) {
      snapshot_.traces.resize(static_cast<size_t>(device_) + 1);
    }
    Trace& trace = snapshot_.traces[static_cast<size_t>(device_)];
    auto place = std::find(trace.streams.begin(), trace.streams.end(), stream_);
    if (place == trace.streams.end()) place = trace.streams.insert(place, stream_);
    trace.stream_index.append(trace.size_events(), static_cast<uint32_t>(place - trace.streams.begin()));
    trace.action.push_back(action);
    trace.addr.push_back(address);
    trace.size.push_back(size);
    trace.stack.push_back(stack_);
    trace.time_us.push_back(static_cast<int64_t>(trace.time_us.size()));
    if (has_pools_) trace.pool.push_back(pool_);
    return *this;
  }

  Snapshot snapshot_;
  int32_t device_ = 0;
  StreamId stream_{};
  PoolId pool_ = {};
  bool has_pools_ = false;
  StackId stack_ = StackId::none;
};

}  // namespace oomscope
