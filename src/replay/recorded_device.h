// RecordedDevice: the driver as a recording remembers it.
//
// Between two calls of the allocator a trace holds the driver events of the second one. The device hands them out in
// order: an allocation succeeds if the next event says so. What the engine asks beyond the recording, or does not ask
// although it is recorded, is a difference.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes_text.h"
#include "caching/device.h"
#include "replay/exact_replay.h"
#include "types/snapshot.h"

namespace oomscope {

inline bool is_driver_event(Action action) {
  return action == Action::segment_alloc || action == Action::segment_free || action == Action::segment_map ||
         action == Action::segment_unmap;
}

class RecordedDevice final : public Device {
 public:
  RecordedDevice(ExactReplay& replay, const Trace& trace, int64_t total_bytes)
      : replay_(replay), trace_(trace), total_bytes_(total_bytes) {}

  // Events [begin, end) answer the next call.
  void open(uint32_t begin, uint32_t end) {
    cursor_ = begin;
    end_ = end;
    event_ = end;
    last_segment_event_ = kNoEvent;
    skip();
  }
  // The next segment or range is at `address`, whatever the events say.
  void give(uint64_t address) { given_ = address; }
  // The event of the segment or pages that the last call obtained; kNoEvent if none.
  [[nodiscard]] uint32_t last_segment_event() const { return last_segment_event_; }
  [[nodiscard]] uint32_t unused() const { return cursor_; }  // == end of the window when all was asked for

  uint64_t allocate(int64_t size, StreamId) override {
    if (given_ != 0) return std::exchange(given_, 0);
    if (!next_is(Action::segment_alloc)) return 0;
    if (trace_.size[cursor_] != size) {
      differ("obtains-other",
             {{"engine_bytes", std::to_string(size)}, {"bytes", std::to_string(trace_.size[cursor_])}});
    } else {
      replay_.counts_.driver_exact += 1;
    }
    last_segment_event_ = cursor_;
    return take();
  }

  void release(uint64_t address, int64_t size) override { expect(Action::segment_free, address, size, "frees"); }
  void unmap(uint64_t address, int64_t size) override { expect(Action::segment_unmap, address, size, "unmaps"); }

  uint64_t reserve(int64_t, int64_t) override {
    if (given_ != 0) return given_;
    return next_is(Action::segment_map) ? trace_.addr[cursor_] : 0;
  }
  void release_range(uint64_t, int64_t) override {}

  bool map(uint64_t address, int64_t size, int64_t) override {
    if (given_ != 0) {
      given_ = 0;
      return true;
    }
    if (!next_is(Action::segment_map)) return false;
    last_segment_event_ = cursor_;
    expect(Action::segment_map, address, size, "maps");
    return true;
  }

  [[nodiscard]] int64_t total_bytes() const override { return total_bytes_; }

 private:
  [[nodiscard]] bool next_is(Action action) const { return cursor_ < end_ && trace_.action[cursor_] == action; }

  uint64_t take() {
    const uint64_t address = trace_.addr[cursor_++];
    skip();
    return address;
  }

  void skip() {
    while (cursor_ < end_ && !is_driver_event(trace_.action[cursor_])) ++cursor_;
  }

  void expect(Action action, uint64_t address, int64_t size, const char* verb) {
    if (!next_is(action)) {
      // Too much was released, or a segment was released where the recording obtains one.
      replay_.differ(cursor_ < end_ ? cursor_ : event_, std::string("only-engine-") + verb,
                     {{"bytes", std::to_string(size)}, {"at", format_address(address)}}, LimitHint::too_low, address);
      return;
    }
    if (trace_.addr[cursor_] != address || trace_.size[cursor_] != size) {
      differ(std::string("other-") + verb,
             {{"engine_bytes", std::to_string(size)},
              {"engine_at", format_address(address)},
              {"bytes", std::to_string(trace_.size[cursor_])},
              {"at", format_address(trace_.addr[cursor_])}},
             address);
    } else {
      replay_.counts_.driver_exact += 1;
    }
    take();
  }

  void differ(std::string_view what, Values values, uint64_t address = 0) {
    replay_.differ(cursor_ < end_ ? cursor_ : event_, what, std::move(values), LimitHint::none, address);
  }

  ExactReplay& replay_;
  const Trace& trace_;
  int64_t total_bytes_;
  uint32_t cursor_ = 0;
  uint32_t end_ = 0;
  uint32_t event_ = 0;
  uint32_t last_segment_event_ = kNoEvent;
  uint64_t given_ = 0;
};

}  // namespace oomscope
