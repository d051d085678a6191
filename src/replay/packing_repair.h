// Lowers a complete placement to a target height by ejecting and placing again what stands out above it.
#pragma once

#include <cstdint>

#include "replay/packing_index.h"

namespace oomscope {

struct RepairOptions {
  int64_t target_bytes = 0;
  int64_t work_units = 0;
  uint64_t seed = 1;        // of the generator that breaks ties
  bool size_alone = false;  // an item's weight: its size alone, or the root of size x duration
};

struct RepairResult {
  bool reached = false;    // all items lie below target_bytes; else the offsets are worthless
  int64_t work_units = 0;  // spent
};

// See packing_repair.cc. Deterministic: the same problem, offsets and options give the same offsets.
RepairResult repair_placement(PackProblem* problem, OverlapIndex* index, const RepairOptions& options);

}  // namespace oomscope
