// What a process takes of a card besides its allocator: the CUDA context and libraries.
#pragma once

#include <cstdint>

namespace oomscope {

// Measured on H100 and H200 with torch 2.11: 518 to 868 MiB a process; CUDA_MODULE_LOADING=EAGER adds 1,092 MiB.
inline constexpr int64_t kContextBytes = int64_t{868} << 20;          // taken off a card's size: the cautious end
inline constexpr int64_t kLargestContextBytes = int64_t{1960} << 20;  // with eager loading

}  // namespace oomscope
