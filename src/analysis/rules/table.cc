// The table of causes, sorted by id, and the order in which findings are told.
#include <algorithm>
#include <array>

#include "analysis/rules/causes.h"
#include "analysis/rules/ranking.h"
#include "analysis/rules/rule.h"

namespace oomscope {

std::span<const Cause> causes() {
  static constexpr std::array kCauses = {
      Cause{"attention-matrix", find_attention_matrix},
      Cause{"capacity", find_capacity},
      Cause{"checkpoint-on-gpu", find_checkpoint_on_gpu},
      Cause{"copy-of-weights", find_copy_of_weights},
      Cause{"device-imbalance", find_device_imbalance},
      Cause{"exception-holds-tensors", find_exception_holds_tensors},
      Cause{"fragmentation", find_fragmentation},
      Cause{"grad-in-evaluation", find_grad_in_evaluation},
      Cause{"graph-kept", find_graph_kept},
      Cause{"growing-sizes", find_growing_sizes},
      Cause{"input-size", find_input_size},
      Cause{"larger-batch", find_larger_batch},
      Cause{"library-workspace", find_library_workspace},
      Cause{"logits", find_logits},
      Cause{"none", find_none},
      Cause{"optimizer-state", find_optimizer_state},
      Cause{"pending-frees", find_pending_frees},
      Cause{"private-pool", find_private_pool},
      Cause{"second-model", find_second_model},
      Cause{"small-blocks-pin-segments", find_small_blocks_pin_segments},
      Cause{"tensors-kept", find_tensors_kept},
  };
  return kCauses;
}

}  // namespace oomscope
