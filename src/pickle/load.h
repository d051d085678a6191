// Unaligned little-endian loads. Callers check that the bytes are there.
#pragma once

#include <cstdint>
#include <cstring>

namespace oomscope {

inline uint32_t load_u32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline uint64_t load_u64(const uint8_t* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace oomscope
