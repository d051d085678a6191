// The table of causes, in the order in which they are told. A cause that shows in recordings and in logs has a line for
// each.
#include <array>

#include "analysis/rules/causes.h"
#include "analysis/rules/log_rules.h"
#include "analysis/rules/rule.h"

namespace oomscope {

std::span<const Cause> causes() {
  static constexpr std::array kCauses = {
      // Of recordings: what the program did and need not have done, the most specific first; then what its memory is
      // made
      // of; then what is true of each failure. A graph that is kept also makes the job too large: capacity is its
      // symptom.
      Cause{.id = "exception-holds-tensors", .find = find_exception_holds_tensors},
      Cause{.id = "graph-kept", .find = find_graph_kept},
      Cause{.id = "checkpoint-on-gpu", .find = find_checkpoint_on_gpu},
      Cause{.id = "copy-of-weights", .find = find_copy_of_weights},
      Cause{.id = "second-model", .find = find_second_model},
      Cause{.id = "attention-matrix", .find = find_attention_matrix},
      Cause{.id = "grad-in-evaluation", .find = find_grad_in_evaluation},
      Cause{.id = "small-blocks-pin-segments", .find = find_small_blocks_pin_segments},
      Cause{.id = "tensors-kept", .find = find_tensors_kept},
      Cause{.id = "pending-frees", .find = find_pending_frees},
      Cause{.id = "private-pool", .find = find_private_pool},
      Cause{.id = "device-imbalance", .find = find_device_imbalance},
      Cause{.id = "optimizer-state", .find = find_optimizer_state},
      Cause{.id = "larger-batch", .find = find_larger_batch},
      Cause{.id = "growing-sizes", .find = find_growing_sizes},
      Cause{.id = "logits", .find = find_logits},
      Cause{.id = "library-workspace", .find = find_library_workspace},
      Cause{.id = "input-size", .find = find_input_size},
      Cause{.id = "other-memory-on-card", .find = find_other_memory},
      Cause{.id = "card-full-before-start", .find = find_card_full},
      Cause{.id = "fragmentation", .find = find_fragmentation},
      Cause{.id = "capacity", .find = find_capacity},
      Cause{.id = "none", .find = find_none},
      // Of logs, which show one failure each: by id, but for what the program did, whose symptom is any of them.
      Cause{.id = "exception-holds-tensors", .find = find_log_exception_holds_tensors},
      Cause{.id = "second-model", .find = find_log_second_model},
      Cause{.id = "memory-grows", .find = find_log_leak},
      Cause{.id = "block-limit", .find = find_log_block_limit},
      Cause{.id = "capacity", .find = find_log_capacity},
      Cause{.id = "capacity-limit", .find = find_log_limit},
      Cause{.id = "card-full-before-start", .find = find_log_first_allocation},
      Cause{.id = "cgroup-limit", .find = find_log_cgroup_limit},
      Cause{.id = "descriptors", .find = find_log_descriptors},
      Cause{.id = "engine-start", .find = find_log_engine_start},
      Cause{.id = "fragmentation", .find = find_log_fragmentation},
      Cause{.id = "gpu-out-of-memory", .find = find_log_unexplained},
      Cause{.id = "host-allocation", .find = find_log_host_allocation},
      Cause{.id = "host-killed", .find = find_log_host_killed},
      Cause{.id = "library-failure", .find = find_log_library},
      Cause{.id = "loader-worker", .find = find_log_loader_worker},
      Cause{.id = "none", .find = find_log_outlived},
      Cause{.id = "not-memory", .find = find_log_not_memory},
      Cause{.id = "other-backend", .find = find_log_other_backend},
      Cause{.id = "other-memory-on-card", .find = find_log_other_processes},
      Cause{.id = "oversized-request", .find = find_log_oversized_request},
      Cause{.id = "pinned-memory", .find = find_log_pinned_memory},
      Cause{.id = "ranks-share-card", .find = find_log_share_card},
      Cause{.id = "shared-memory", .find = find_log_shared_memory},
      Cause{.id = "windows-commit", .find = find_log_windows_commit},
  };
  return kCauses;
}

}  // namespace oomscope
