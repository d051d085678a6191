// Categories: what every allocation of a run is, with the reason and how sure that is.
//
// Each allocation is in exactly one category, so the categories sum to the live bytes at every event. See Note [What
// tells a parameter from a gradient] in categories.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/structure.h"
#include "types/confidence.h"

namespace oomscope {

enum class Category : uint8_t {
  parameter,  // and buffers, and copies of them
  gradient,
  optimizer_state,
  activation,
  input,
  logits,
  temporary,
  workspace,
  communication,
  graph_pool,
  unknown,
};
inline constexpr size_t kCategories = static_cast<size_t>(Category::unknown) + 1;

// As --json prints it: "optimizer state".
[[nodiscard]] std::string_view name_of(Category category);

// Why an allocation is in its category.
enum class CategoryReason : uint8_t {
  none,
  model_frames,       // made, moved or loaded by a module
  file_frames,        // read from a file
  copy_frames,        // copied by deepcopy or gathered in a state_dict
  size_of_gradient,   // as large as a gradient, and older
  lives_through,      // there before the first pass and behind the last
  optimizer_frames,   // made where optimizers make state
  survives_step,      // born in an optimizer step and alive behind it
  dies_in_phase,      // born and freed in one phase
  survives_backward,  // born in backward, alive behind it
  size_of_parameter,  // born in backward, as large as a parameter
  kept_for_backward,  // born in forward, alive behind it
  recomputed,         // by activation checkpointing
  loss_frames,        // born in the loss
  size_of_logits,     // as large as what the loss works on
  made_for_pass,      // born outside of modules before a pass
  library_frames,     // cuBLAS or cuDNN asked
  kept_by_library,    // born in the first pass, never freed, repeated by no other pass
  freed_at_once,      // inside a convolution, and freed before anything else
  distributed_frames,
  private_pool,
};

// "model-frames": its sentence is "reason.ID" in src/words/.
[[nodiscard]] std::string_view name_of(CategoryReason reason);

struct AllocationCategory {
  Category category = Category::unknown;
  CategoryReason reason = CategoryReason::none;
  Confidence confidence = Confidence::low;
};

// By allocation of the timeline.
[[nodiscard]] std::vector<AllocationCategory> find_categories(const Timeline& timeline, const Structure& structure);

using CategoryBytes = std::array<int64_t, kCategories>;

// Bytes by category as requested, live or awaiting another stream. What the blocks are larger than that is counted
// apart, so that at + rounding_at are the active bytes.
struct CategorySums {
  CategoryBytes at{};                           // right after `event`
  CategoryBytes most{};                         // the most of each that was ever live
  std::array<uint32_t, kCategories> most_at{};  // event of it
  int64_t rounding_at = 0;
  int64_t rounding_most = 0;
  uint32_t rounding_most_at = 0;
};
// Sizes must have been filled in by a replay.
[[nodiscard]] CategorySums sum_categories(const Timeline& timeline, const std::vector<AllocationCategory>& categories,
                                          uint32_t event);

}  // namespace oomscope
