// The causes that a recording can show, a file each; table.cc lists them.
#pragma once

#include <vector>

#include "analysis/rules/rule.h"

namespace oomscope {

[[nodiscard]] std::vector<Finding> find_attention_matrix(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_capacity(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_card_full(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_checkpoint_on_gpu(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_copy_of_weights(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_device_imbalance(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_exception_holds_tensors(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_fragmentation(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_grad_in_evaluation(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_graph_kept(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_growing_sizes(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_input_size(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_larger_batch(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_library_workspace(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_logits(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_none(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_optimizer_state(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_other_memory(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_pending_frees(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_private_pool(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_second_model(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_small_blocks_pin_segments(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_tensors_kept(const CaseFacts& facts);

}  // namespace oomscope
