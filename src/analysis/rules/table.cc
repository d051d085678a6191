// The table of causes, sorted by id. A cause that shows in recordings and in logs has a line for each.
#include <array>

#include "analysis/rules/causes.h"
#include "analysis/rules/log_rules.h"
#include "analysis/rules/rule.h"

namespace oomscope {

std::span<const Cause> causes() {
  static constexpr std::array kCauses = {
      Cause{.id = "attention-matrix", .find = find_attention_matrix},
      Cause{.id = "capacity", .find = find_capacity},
      Cause{.id = "capacity", .find = find_log_capacity},
      Cause{.id = "capacity-limit", .find = find_log_limit},
      Cause{.id = "card-full-before-start", .find = find_log_first_allocation},
      Cause{.id = "cgroup-limit", .find = find_log_cgroup_limit},
      Cause{.id = "checkpoint-on-gpu", .find = find_checkpoint_on_gpu},
      Cause{.id = "copy-of-weights", .find = find_copy_of_weights},
      Cause{.id = "descriptors", .find = find_log_descriptors},
      Cause{.id = "device-imbalance", .find = find_device_imbalance},
      Cause{.id = "engine-start", .find = find_log_engine_start},
      Cause{.id = "exception-holds-tensors", .find = find_exception_holds_tensors},
      Cause{.id = "fragmentation", .find = find_fragmentation},
      Cause{.id = "fragmentation", .find = find_log_fragmentation},
      Cause{.id = "gpu-out-of-memory", .find = find_log_unexplained},
      Cause{.id = "grad-in-evaluation", .find = find_grad_in_evaluation},
      Cause{.id = "graph-kept", .find = find_graph_kept},
      Cause{.id = "growing-sizes", .find = find_growing_sizes},
      Cause{.id = "host-allocation", .find = find_log_host_allocation},
      Cause{.id = "host-killed", .find = find_log_host_killed},
      Cause{.id = "input-size", .find = find_input_size},
      Cause{.id = "larger-batch", .find = find_larger_batch},
      Cause{.id = "library-failure", .find = find_log_library},
      Cause{.id = "library-workspace", .find = find_library_workspace},
      Cause{.id = "loader-worker", .find = find_log_loader_worker},
      Cause{.id = "logits", .find = find_logits},
      Cause{.id = "memory-grows", .find = find_log_leak},
      Cause{.id = "none", .find = find_none},
      Cause{.id = "not-memory", .find = find_log_not_memory},
      Cause{.id = "optimizer-state", .find = find_optimizer_state},
      Cause{.id = "other-backend", .find = find_log_other_backend},
      Cause{.id = "other-memory-on-card", .find = find_log_other_processes},
      Cause{.id = "oversized-request", .find = find_log_oversized_request},
      Cause{.id = "pending-frees", .find = find_pending_frees},
      Cause{.id = "private-pool", .find = find_private_pool},
      Cause{.id = "ranks-share-card", .find = find_log_share_card},
      Cause{.id = "second-model", .find = find_second_model},
      Cause{.id = "shared-memory", .find = find_log_shared_memory},
      Cause{.id = "small-blocks-pin-segments", .find = find_small_blocks_pin_segments},
      Cause{.id = "tensors-kept", .find = find_tensors_kept},
      Cause{.id = "windows-commit", .find = find_log_windows_commit},
  };
  return kCauses;
}

}  // namespace oomscope
