// The allocator's statistics, as torch.cuda.memory_stats() names and counts them.
//
// Source: c10/core/CachingDeviceAllocator.h (Stat, StatType, DeviceStats).
#pragma once

#include <array>
#include <cstdint>

namespace oomscope {

// One statistic as it is read.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t freed = 0;  // the sum of all decreases
  [[nodiscard]] int64_t allocated() const { return current + freed; }
};

// A number and the highest that it ever was. Kept is how far it is below: then a change is one addition, whose sign
// says whether there is a new peak. Every malloc and free changes a dozen of these.
class PeakCounter {
 public:
  void increase(int64_t amount) {
    below_peak_ -= amount;
    if (__builtin_expect(static_cast<long>(below_peak_ < 0), 0) != 0) {
      peak_ -= below_peak_;
      below_peak_ = 0;
    }
  }
  void decrease(int64_t amount) { below_peak_ += amount; }
  [[nodiscard]] int64_t current() const { return peak_ - below_peak_; }
  [[nodiscard]] int64_t peak() const { return peak_; }

 private:
  int64_t peak_ = 0;
  int64_t below_peak_ = 0;
};

class StatCounter {
 public:
  void increase(int64_t amount) { counter_.increase(amount); }
  void decrease(int64_t amount) {
    counter_.decrease(amount);
    freed_ += amount;
  }
  // The net of several changes, of either sign: it alone decides the peak.
  void change(int64_t amount) {
    counter_.increase(amount);
    freed_ += amount < 0 ? -amount : 0;
  }
  [[nodiscard]] Stat value() const { return {.current = counter_.current(), .peak = counter_.peak(), .freed = freed_}; }

 private:
  PeakCounter counter_;
  int64_t freed_ = 0;
};

// One statistic for the pool classes and for both together.
class StatArray {
 public:
  void increase(bool is_small, int64_t amount) {
    all_.increase(amount);
    classes_[is_small].increase(amount);
  }
  void decrease(bool is_small, int64_t amount) {
    all_.decrease(amount);
    classes_[is_small].decrease(amount);
  }
  void change(bool is_small, int64_t amount) {
    all_.increase(amount);
    classes_[is_small].change(amount);
  }
  [[nodiscard]] Stat all() const {
    return {.current = all_.current(), .peak = all_.peak(), .freed = small().freed + large().freed};
  }
  [[nodiscard]] Stat small() const { return classes_[1].value(); }
  [[nodiscard]] Stat large() const { return classes_[0].value(); }

 private:
  PeakCounter all_;
  std::array<StatCounter, 2> classes_;  // large, small
};

struct Stats {
  StatArray allocation;
  StatArray segment;
  StatArray active;
  StatArray inactive_split;
  StatArray allocated_bytes;
  StatArray reserved_bytes;
  StatArray active_bytes;
  StatArray inactive_split_bytes;
  StatArray requested_bytes;
  StatCounter oversize_allocations;
  StatCounter oversize_segments;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_oom_rejections = 0;
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
};

}  // namespace oomscope
