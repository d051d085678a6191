// Internal to src/replay: is the allocator's state what the snapshot's segments say?
#pragma once

#include <optional>
#include <string>

#include "base/values.h"
#include "caching/allocator.h"
#include "types/snapshot.h"

namespace oomscope {

struct StateDifference {
  std::string what;  // a key of src/words/
  Values values;
};

// Nothing if segments and blocks are equal: address, size, type, stream, pool, expandable; of blocks address, size,
// state and, where a block is live, its requested size. Else the first difference.
[[nodiscard]] std::optional<StateDifference> compare_final_state(const Snapshot& snapshot, int32_t device,
                                                                 const CachingAllocator& allocator);

}  // namespace oomscope
