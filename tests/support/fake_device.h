// FakeDevice: a driver for tests. Addresses can be scripted, memory has a capacity, events finish on command, and every
// call is written down.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "caching/device.h"

namespace oomscope {

enum class DriverCallKind { allocate, release, reserve, release_range, map, unmap, refused };

struct DriverCall {
  DriverCallKind kind;
  uint64_t address;  // 0 for a refused call
  int64_t size;
  bool operator==(const DriverCall&) const = default;
};

inline void PrintTo(const DriverCall& call, std::ostream* out) {
  constexpr const char* kNames[] = {"allocate", "release", "reserve", "release_range", "map", "unmap", "refused"};
  *out << kNames[static_cast<int>(call.kind)] << " " << call.size << " at 0x" << std::hex << call.address << std::dec;
}

class FakeDevice final : public Device {
 public:
  // Where segments go if nothing is scripted: upwards, so far apart that none touch.
  static constexpr uint64_t kFirst = 0x100000000000;
  static constexpr uint64_t kApart = uint64_t{1} << 36;
  static constexpr uint64_t kFirstRange = 0x600000000000;

  std::deque<uint64_t> addresses;       // of the next segments, before kFirst is used
  std::deque<uint64_t> ranges;          // of the next reserved ranges
  int64_t capacity = int64_t{1} << 50;  // physical bytes
  int64_t total = int64_t{1} << 40;     // what total_bytes() says
  std::vector<int> refuse_maps;         // numbers of the map calls that run out of memory, counted from 0
  std::vector<DriverCall> calls;        // all but reserve and release_range, which PyTorch does not trace either
  std::vector<DriverCall> range_calls;
  std::set<uint64_t> done_events;
  std::vector<std::pair<uint64_t, StreamId>> events;  // (number, stream), as recorded
  std::vector<uint64_t> waited_events;

  uint64_t allocate(int64_t size, StreamId) override {
    if (used_ + size > capacity) return refuse(size);
    uint64_t address = next_;
    if (!addresses.empty()) {
      address = addresses.front();
      addresses.pop_front();
    } else {
      next_ += kApart;
    }
    used_ += size;
    calls.push_back({DriverCallKind::allocate, address, size});
    return address;
  }
  void release(uint64_t address, int64_t size) override {
    used_ -= size;
    calls.push_back({DriverCallKind::release, address, size});
  }
  uint64_t reserve(int64_t size, int64_t) override {
    uint64_t address = next_range_;
    if (!ranges.empty()) {
      address = ranges.front();
      ranges.pop_front();
    } else {
      next_range_ += kApart * 64;
    }
    range_calls.push_back({DriverCallKind::reserve, address, size});
    return address;
  }
  void release_range(uint64_t address, int64_t size) override {
    range_calls.push_back({DriverCallKind::release_range, address, size});
  }
  bool map(uint64_t address, int64_t size, int64_t page) override {
    EXPECT_EQ(size % page, 0);
    const int number = maps_++;
    for (int refused : refuse_maps) {
      if (refused == number) return refuse(size) != 0;
    }
    if (used_ + size > capacity) return refuse(size) != 0;
    used_ += size;
    calls.push_back({DriverCallKind::map, address, size});
    return true;
  }
  void unmap(uint64_t address, int64_t size) override {
    used_ -= size;
    calls.push_back({DriverCallKind::unmap, address, size});
  }
  [[nodiscard]] int64_t total_bytes() const override { return total; }

  EventId record_event(StreamId stream) override {
    events.emplace_back(events.size(), stream);
    return EventId{events.size() - 1};
  }
  bool event_done(EventId event) override { return done_events.count(static_cast<uint64_t>(event)) != 0; }
  void wait_event(EventId event) override {
    waited_events.push_back(static_cast<uint64_t>(event));
    done_events.insert(static_cast<uint64_t>(event));
  }

  void finish_event(uint64_t number) { done_events.insert(number); }
  [[nodiscard]] int64_t used() const { return used_; }
  [[nodiscard]] std::vector<DriverCall> take_calls() { return std::exchange(calls, {}); }

 private:
  uint64_t refuse(int64_t size) {
    calls.push_back({DriverCallKind::refused, 0, size});
    return 0;
  }

  uint64_t next_ = kFirst;
  uint64_t next_range_ = kFirstRange;
  int64_t used_ = 0;
  int maps_ = 0;
};

}  // namespace oomscope
