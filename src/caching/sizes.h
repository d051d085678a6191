// Sizes of PyTorch's CUDA caching allocator: constants, rounding, segment sizes.
//
// Source: c10/cuda/CUDACachingAllocator.cpp, round_size and get_allocation_size. The constants have not changed
// since March 2019 (PR #17120).
#pragma once

#include <bit>
#include <cstdint>

#include "caching/rules.h"
#include "types/allocator_settings.h"

namespace oomscope {

inline constexpr int64_t kMinBlockSize = 512;              // every block is a multiple of it
inline constexpr int64_t kSmallSize = 1048576;             // largest rounded size of the small pool, inclusive
inline constexpr int64_t kSmallBuffer = 2097152;           // segment and page of the small pool
inline constexpr int64_t kMinLargeAlloc = 10485760;        // from here on a request gets its own rounded segment
inline constexpr int64_t kRoundLarge = 2097152;            // rounding of those
inline constexpr int64_t kHugeRequest = int64_t{1} << 60;  // refused before anything else ("more than 1EB")
// Stands in for the card's memory where nothing tells it: larger than any, so that expandable ranges never end.
inline constexpr int64_t kBoundlessCard = int64_t{1} << 44;

[[nodiscard]] constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Index into roundup_power2_divisions: entry 0 serves everything below 2 MiB, entry k [2^k, 2^(k+1)) MiB, 15 the rest.
[[nodiscard]] constexpr int roundup_index(int64_t request) {
  const int log2 = static_cast<int>(std::bit_width(static_cast<uint64_t>(request))) - 1;
  return log2 < 20 ? 0 : (log2 > 35 ? 15 : log2 - 20);
}

[[nodiscard]] constexpr int64_t round_to_power2_division(int64_t request, int64_t divisions) {
  const uint64_t value = static_cast<uint64_t>(request);
  if (std::has_single_bit(value)) return request;
  const int64_t floor = static_cast<int64_t>(std::bit_floor(value));
  const int64_t quantum = floor / static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(divisions)));
  return quantum == 0 ? floor * 2 : round_up(request, quantum);
}

// Rounding where no division is set, which is nearly everywhere.
[[nodiscard]] constexpr int64_t round_to_block(int64_t request) {
  return request < kMinBlockSize ? kMinBlockSize : round_up(request, kMinBlockSize);
}

// Bytes of the block for a request of 1 .. 2^60 - 1 bytes.
[[nodiscard]] inline int64_t round_size(int64_t request, const AllocatorSettings& settings, const RuleSet& rules) {
  if (request < kMinBlockSize) return kMinBlockSize;
  const int64_t divisions = settings.roundup_power2_divisions[static_cast<size_t>(roundup_index(request))];
  // PyTorch's product wraps around in the same way: with 2^55 divisions and more, all is rounded to a power of two.
  const uint64_t smallest = uint64_t{kMinBlockSize} * static_cast<uint64_t>(divisions);
  if (divisions > 0 && static_cast<uint64_t>(request) > smallest) {
    if (divisions > 1) return round_to_power2_division(request, divisions);
    if (!rules.one_division_rounds) return request;
  }
  return round_to_block(request);
}

[[nodiscard]] constexpr bool is_small(int64_t rounded_size) { return rounded_size <= kSmallSize; }

// Bytes asked of the driver for a block of `rounded_size`: also what the limit is tested with and what an OOM
// message prints, even when expandable segments serve the request.
[[nodiscard]] inline int64_t allocation_size(int64_t rounded_size, const AllocatorSettings& settings) {
  if (rounded_size <= kSmallSize) return kSmallBuffer;
  if (rounded_size < kMinLargeAlloc) return settings.large_segment_size_bytes;
  return round_up(rounded_size, kRoundLarge);
}

// Address space of an expandable segment on a card of `total_bytes`, in whole pages; and the card from the range.
[[nodiscard]] constexpr int64_t expandable_range(int64_t total_bytes, int64_t page_bytes) {
  return round_up(total_bytes + total_bytes / 8, page_bytes);
}
[[nodiscard]] constexpr int64_t total_of_range(int64_t range_bytes) { return range_bytes / 9 * 8; }

}  // namespace oomscope
