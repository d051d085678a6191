// For hashes of our own tables.
#pragma once

#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

namespace oomscope {

// 2^64 divided by the golden ratio: multiplying by it spreads a number's bits upwards.
inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;

// Another one in each process, so that nobody can write a file whose texts or stacks all collide. Nothing that is
// printed may hang on it: ids are given in order of appearance.
inline uint64_t hash_seed() {
  static const uint64_t seed = [] {
    uint64_t bits = kGolden;
    const void* random = reinterpret_cast<const void*>(getauxval(AT_RANDOM));  // 16 bytes from the kernel
    if (random != nullptr) std::memcpy(&bits, random, sizeof bits);
    return bits;
  }();
  return seed;
}

}  // namespace oomscope
