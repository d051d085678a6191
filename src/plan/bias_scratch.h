// The scratch of one kernel that many models need only from a certain size on: the sum behind a bias gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "model/structure.h"
#include "replay/what_if.h"

namespace oomscope {

// Of an H100 or H200, where these rules were measured. On another card the sizes that follow from it are others.
inline constexpr int64_t kMultiprocessors = 132;

// One bias gradient: the layer's inputs, the rows and columns that are summed, and the two blocks of scratch behind it,
// where the recording has them.
struct BiasSum {
  uint32_t gradient = 0;  // allocation
  uint32_t scratch = kNoAllocation;
  uint32_t semaphores = kNoAllocation;
  uint32_t input_gradient = 0;  // allocation whose size tells the rows
  int64_t inputs = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// What the kernel asks for; no bytes where it needs no scratch.
struct SumScratch {
  int64_t scratch_bytes = 0;
  int64_t semaphore_bytes = 0;
};
[[nodiscard]] SumScratch sum_scratch(int64_t rows, int64_t columns);

// Those of a recording whose sizes agree with sum_scratch.
[[nodiscard]] std::vector<BiasSum> find_bias_sums(const RequestStream& requests, const Structure& structure);

}  // namespace oomscope
