// The allocator's statistics, as torch.cuda.memory_stats() names and counts them.
//
// Source: c10/core/CachingDeviceAllocator.h (Stat, StatType, DeviceStats).
#pragma once

#include <cstdint>

namespace oomscope {

// `allocated` (the sum of all increases) is current + freed, so the hot path does not keep it.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t freed = 0;
  void increase(int64_t amount) {
    current += amount;
    if (__builtin_expect(static_cast<long>(current > peak), 0) != 0) peak = current;  // rarely: a store less
  }
  void decrease(int64_t amount) {
    current -= amount;
    freed += amount;
  }
  [[nodiscard]] int64_t allocated() const { return current + freed; }
};

// One statistic for the pool classes and for both together. all.freed == small.freed + large.freed.
struct StatArray {
  Stat all;
  Stat small;
  Stat large;
  void increase(bool is_small, int64_t amount) {
    all.increase(amount);
    (is_small ? small : large).increase(amount);
  }
  void decrease(bool is_small, int64_t amount) {
    all.decrease(amount);
    (is_small ? small : large).decrease(amount);
  }
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
  Stat oversize_allocations;
  Stat oversize_segments;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_oom_rejections = 0;
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
};

}  // namespace oomscope
