// Where the free bytes inside PyTorch's segments were, and why none of them served a request.
#pragma once

#include <cstdint>

#include "caching/allocator.h"

namespace oomscope {

// All bytes that are reserved and not handed out, by what keeps a request from using them. They sum to
// reserved - active.
struct FreeSpace {
  int64_t usable_bytes = 0;  // in the request's own pool and stream
  int64_t usable_pieces = 0;
  int64_t largest_usable_bytes = 0;  // the largest of these pieces
  int64_t oversize_bytes = 0;        // the same, but max_split_size forbids splitting them for it
  int64_t other_class_bytes = 0;     // the small pool, for a large request, or the reverse
  int64_t other_stream_bytes = 0;
  int64_t private_pool_bytes = 0;  // of another pool: graph captures, MemPool
};

// For a request of `size_bytes` (rounded) on `stream` in `pool`.
[[nodiscard]] FreeSpace free_space_for(const CachingAllocator& allocator, int64_t size_bytes, StreamId stream,
                                       PoolId pool);

}  // namespace oomscope
