// What kind of failure it was: the one list, as `why --json` prints it under "kind".
#pragma once

#include <cstdint>
#include <string_view>

namespace oomscope {

enum class Kind : uint8_t {
  gpu_oom,                         // the GPU ran out, more cannot be said
  gpu_oom_capacity,                // more was wanted at once than there is
  gpu_oom_fragmentation,           // enough was free, but in pieces that could not serve
  gpu_oom_other_process,           // memory outside this process's allocator is missing
  gpu_oom_first_alloc_or_context,  // nothing was held yet
  gpu_lib_alloc_failed,
  other_backend_oom,
  host_oom_killed,
  host_alloc_failed,
  cgroup_or_slurm_limit,
  dataloader_worker_killed,
  shm_exhausted,
  fd_exhausted,
  windows_commit_limit,
  leak_suspected,
  not_memory,
  no_failure,
};

[[nodiscard]] constexpr std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::gpu_oom: return "gpu_oom";
    case Kind::gpu_oom_capacity: return "gpu_oom_capacity";
    case Kind::gpu_oom_fragmentation: return "gpu_oom_fragmentation";
    case Kind::gpu_oom_other_process: return "gpu_oom_other_process";
    case Kind::gpu_oom_first_alloc_or_context: return "gpu_oom_first_alloc_or_context";
    case Kind::gpu_lib_alloc_failed: return "gpu_lib_alloc_failed";
    case Kind::other_backend_oom: return "other_backend_oom";
    case Kind::host_oom_killed: return "host_oom_killed";
    case Kind::host_alloc_failed: return "host_alloc_failed";
    case Kind::cgroup_or_slurm_limit: return "cgroup_or_slurm_limit";
    case Kind::dataloader_worker_killed: return "dataloader_worker_killed";
    case Kind::shm_exhausted: return "shm_exhausted";
    case Kind::fd_exhausted: return "fd_exhausted";
    case Kind::windows_commit_limit: return "windows_commit_limit";
    case Kind::leak_suspected: return "leak_suspected";
    case Kind::not_memory: return "not_memory";
    case Kind::no_failure: return "no_failure";
  }
  return "gpu_oom";
}

}  // namespace oomscope
