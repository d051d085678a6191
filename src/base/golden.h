// For hashes of our own tables: 2^64 divided by the golden ratio, by which multiplying spreads a number's bits upwards.
#pragma once

#include <cstdint>

namespace oomscope {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;

}  // namespace oomscope
