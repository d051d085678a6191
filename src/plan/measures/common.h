// What several measures ask of a job.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "plan/measures/measure.h"

namespace oomscope {

// Sizes of parameters, as requested.
[[nodiscard]] std::set<int64_t> parameter_sizes(const Job& job);
[[nodiscard]] int64_t largest_parameter(const Job& job);

// Parameters that are there while the first pass trains.
[[nodiscard]] std::vector<uint32_t> trained_parameters(const Job& job);

// Passes that train: with backward.
[[nodiscard]] std::vector<JobPass> training_passes(const Job& job);

// Of a weight: 2 where they are 16-bit, too, and not cast under autocast.
[[nodiscard]] int64_t element_bytes(const Job& job);

// Made and freed inside an optimizer step.
[[nodiscard]] bool is_step_temporary(const Job& job, uint32_t id);
[[nodiscard]] bool is_optimizer_state(const Job& job, uint32_t id);

// Where the arithmetic of each optimizer step begins: its state is there, gradients are not cleared yet.
struct StepPosition {
  uint32_t position = kNowhere;
  uint32_t like = kNoAllocation;  // an allocation of the same stream and pool
};
[[nodiscard]] std::vector<StepPosition> step_positions(const Job& job);

// The repeated part of a model: one entry a layer, in the order of forward.
struct Layer {
  uint32_t begin = kNowhere;  // position of its first request
  uint32_t end = kNowhere;    // of the first behind it
  uint32_t output = kNoAllocation;
};
[[nodiscard]] std::vector<Layer> find_layers(const Job& job, const JobPass& pass);

}  // namespace oomscope
