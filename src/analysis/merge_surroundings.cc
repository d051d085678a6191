#include "analysis/merge_surroundings.h"

namespace oomscope {

void merge_surroundings(const Surroundings& from, Surroundings& to) {
  if (to.torch_version.empty()) to.torch_version = from.torch_version;
  if (to.cuda_version.empty()) to.cuda_version = from.cuda_version;
  if (to.gpus.empty()) to.gpus = from.gpus;
  if (to.gpu_name.empty()) to.gpu_name = from.gpu_name;
  if (to.gpu_processes.empty()) to.gpu_processes = from.gpu_processes;
  if (to.host_processes.empty()) to.host_processes = from.host_processes;
  if (!to.host_total_bytes) to.host_total_bytes = from.host_total_bytes;
  if (!to.host_available_bytes) to.host_available_bytes = from.host_available_bytes;
  if (!to.job_limit_bytes) to.job_limit_bytes = from.job_limit_bytes;
  if (!to.job_used_bytes) to.job_used_bytes = from.job_used_bytes;
  if (!to.shm_total_bytes) to.shm_total_bytes = from.shm_total_bytes;
  if (!to.shm_used_bytes) to.shm_used_bytes = from.shm_used_bytes;
  if (!to.num_workers) to.num_workers = from.num_workers;
  if (!to.prefetch_factor) to.prefetch_factor = from.prefetch_factor;
  if (!to.batch_size) to.batch_size = from.batch_size;
  if (!to.pin_memory) to.pin_memory = from.pin_memory;
  if (!to.ranks_on_host) to.ranks_on_host = from.ranks_on_host;
  if (!to.batch_bytes) to.batch_bytes = from.batch_bytes;
  if (to.framework.empty()) to.framework = from.framework;
  to.in_force.insert(from.in_force.begin(), from.in_force.end());
  merge_limits(from.limits, to.limits);
  to.is_windows |= from.is_windows;
  to.is_cmd |= from.is_cmd;
  to.is_image_build |= from.is_image_build;
  to.is_wsl |= from.is_wsl;
  to.is_notebook |= from.is_notebook;
  to.is_container |= from.is_container;
  to.is_slurm |= from.is_slurm;
  to.is_rocm |= from.is_rocm;
  to.has_sgd |= from.has_sgd;
  to.expandable_segments |= from.expandable_segments;
}

}  // namespace oomscope
