// BlockPool: the small or the large half of the default pool or of a private pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "caching/block.h"
#include "caching/free_set.h"
#include "types/ids.h"

namespace oomscope {

struct PrivatePool;

// The free and the unmapped blocks of one stream in one pool.
struct StreamBlocks {
  explicit StreamBlocks(StreamId id) : stream(id) {}
  StreamId stream;
  FreeSet free;
  UnmappedSet unmapped;
};

struct BlockPool {
  bool is_small = false;
  PrivatePool* owner = nullptr;  // nullptr: the default pool
  uint64_t searches = 0;         // free-set searches while garbage collection was active: the clock of block ages
  std::vector<std::unique_ptr<StreamBlocks>> streams = {};  // ascending by handle: the order of freeing and collecting
  StreamBlocks* last_used = nullptr;                        // most calls ask for the same stream again

  StreamBlocks& of(StreamId stream) {
    return last_used != nullptr && last_used->stream == stream ? *last_used : find_or_add(stream);
  }

 private:
  // Not where of() is inlined: malloc would run out of registers.
  [[gnu::noinline]] StreamBlocks& find_or_add(StreamId stream) {
    auto place = std::lower_bound(streams.begin(), streams.end(), stream,
                                  [](const auto& entry, StreamId id) { return entry->stream < id; });
    if (place == streams.end() || (*place)->stream != stream) {
      place = streams.insert(place, std::make_unique<StreamBlocks>(stream));
    }
    last_used = place->get();
    return *last_used;
  }
};

struct PrivatePool {
  PoolId id;
  int64_t use_count = 1;  // scopes and references; at 0 the pool is freeable
  int64_t device_allocations = 0;
  bool use_on_oom = false;
  bool no_split = false;
  bool custom_allocator = false;  // has its own segment allocator: no expandable segments
  BlockPool small{.is_small = true, .owner = this};
  BlockPool large{.is_small = false, .owner = this};
  [[nodiscard]] bool freeable() const { return use_count == 0; }
};

}  // namespace oomscope
