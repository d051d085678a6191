// The table of causes, sorted by id. A cause that shows in recordings and in logs has a line for each.
#include <array>

#include "analysis/rules/log_rules.h"
#include "analysis/rules/rule.h"

namespace oomscope {

std::span<const Cause> causes() {
  static const std::vector<Cause> kCauses = {
      {.id = "capacity", .find = find_log_capacity},
      {.id = "capacity-limit", .find = find_log_limit},
      {.id = "card-full-before-start", .find = find_log_first_allocation},
      {.id = "cgroup-limit", .find = find_log_cgroup_limit},
      {.id = "descriptors", .find = find_log_descriptors},
      {.id = "engine-start", .find = find_log_engine_start},
      {.id = "fragmentation", .find = find_log_fragmentation},
      {.id = "gpu-out-of-memory", .find = find_log_unexplained},
      {.id = "host-allocation", .find = find_log_host_allocation},
      {.id = "host-killed", .find = find_log_host_killed},
      {.id = "library-failure", .find = find_log_library},
      {.id = "loader-worker", .find = find_log_loader_worker},
      {.id = "memory-grows", .find = find_log_leak},
      {.id = "not-memory", .find = find_log_not_memory},
      {.id = "other-backend", .find = find_log_other_backend},
      {.id = "other-memory-on-card", .find = find_log_other_processes},
      {.id = "oversized-request", .find = find_log_oversized_request},
      {.id = "ranks-share-card", .find = find_log_share_card},
      {.id = "shared-memory", .find = find_log_shared_memory},
      {.id = "windows-commit", .find = find_log_windows_commit},
  };
  return kCauses;
}

}  // namespace oomscope
