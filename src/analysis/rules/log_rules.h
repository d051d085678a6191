// The rules over logs, a file each; table.cc lists them.
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/rules/log_rule.h"

namespace oomscope {

[[nodiscard]] std::vector<Finding> find_log_block_limit(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_capacity(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_cgroup_limit(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_descriptors(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_engine_start(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_exception_holds_tensors(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_first_allocation(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_fragmentation(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_host_allocation(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_host_killed(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_leak(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_library(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_limit(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_loader_worker(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_not_memory(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_other_backend(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_other_processes(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_outlived(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_oversized_request(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_share_card(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_pinned_memory(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_second_model(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_shared_memory(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_unexplained(const CaseFacts& facts);
[[nodiscard]] std::vector<Finding> find_log_windows_commit(const CaseFacts& facts);

}  // namespace oomscope
