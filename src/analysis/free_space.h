// Where the free bytes inside PyTorch's segments were, and why none of them served a request.
#pragma once

#include <cstdint>
#include <vector>

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
  int64_t private_pool_bytes = 0;  // of another private pool: graph captures, MemPool
  int64_t default_pool_bytes = 0;  // of the default pool, for a request of a private one
};

// Free bytes in segments that live blocks keep from being given back or used whole, by the kind of segment.
struct PinnedSpace {
  int64_t small_segments = 0;  // of the small pool (2 MiB each), partly free
  int64_t small_free_bytes = 0;
  int64_t small_live_bytes = 0;
  int64_t large_segments = 0;  // others, where what is live is under an eighth of the segment
  int64_t large_free_bytes = 0;
  int64_t large_live_bytes = 0;
  std::vector<uint64_t> tags;  // of the live blocks in those segments
};
[[nodiscard]] PinnedSpace pinned_space(const CachingAllocator& allocator);

// For a request of `size_bytes` (rounded) on `stream` in `pool`.
[[nodiscard]] FreeSpace free_space_for(const CachingAllocator& allocator, int64_t size_bytes, StreamId stream,
                                       PoolId pool);

}  // namespace oomscope
