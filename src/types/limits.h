// The most that evidence may claim. No machine comes near, so what lies beyond is damage, and arithmetic on what is
// left cannot overflow: sums stay below 2^61, and sizes that are doubled on the way below 2^62.
#pragma once

#include <cstdint>

namespace oomscope {

inline constexpr int32_t kMaxDevices = 1024;
inline constexpr int64_t kMaxSizeBytes = int64_t{1} << 50;   // one block, segment or setting
inline constexpr int64_t kMaxTotalBytes = int64_t{1} << 60;  // what a file's segments, or its events, name together

// Takes the sizes of one file, one after another, and refuses those that are impossible: alone, or with the others.
class SizeBudget {
 public:
  [[nodiscard]] bool takes(int64_t size_bytes, int64_t limit_bytes = kMaxSizeBytes) {
    if (size_bytes < 0 || size_bytes > limit_bytes || size_bytes > left_bytes_) return false;
    left_bytes_ -= size_bytes;
    return true;
  }

 private:
  int64_t left_bytes_ = kMaxTotalBytes;
};

}  // namespace oomscope
