// The scratch of convolutions: which tensors it holds copies of, and so how it grows.
#pragma once

#include <cstdint>
#include <vector>

#include "model/structure.h"
#include "plan/match_requests.h"

namespace oomscope {

// Bytes = share * (sizes of the copied allocations) + fixed.
struct ScratchSize {
  std::vector<uint32_t> copied;
  double share = 1;
  int64_t fixed = 0;
};

// One block of scratch behind a convolution's result, forward or backward.
struct ConvScratch {
  uint32_t scratch = kNoAllocation;  // allocation; none: at larger values there may be one
  uint32_t result = kNoAllocation;   // allocation that it is asked for behind
  bool is_explained = false;         // `size` gives it to the byte; else it is not known how it grows
  ScratchSize size;
  bool is_per_sample = false;  // a multiple of the weight: such kernels stay
  // It belongs to a kernel for small problems: then what the kernel for large ones takes, which may follow it.
  bool may_change = false;
  ScratchSize large;
  // How large an operand is from where on the other kernel is usual; none: it comes with growth.
  uint32_t operand = kNoAllocation;
  int64_t usual_from = 0;  // bytes
};

// Those of a recording, in its order.
[[nodiscard]] std::vector<ConvScratch> find_conv_scratch(const RequestLog& log, const Structure& structure);

}  // namespace oomscope
