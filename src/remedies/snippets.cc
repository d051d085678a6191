#include "remedies/snippets.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/bytes_text.h"
#include "types/limits.h"

namespace oomscope {
namespace {

// "2.11.0+cu130" as (2, 11); (0, 0) for what is no version.
std::pair<int, int> version_of(std::string_view text) {
  const char* end = text.data() + text.size();
  int major = 0;
  int minor = 0;
  const std::from_chars_result first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc{}) return {0, 0};
  if (first.ptr != end && *first.ptr == '.') std::from_chars(first.ptr + 1, end, minor);
  return {major, minor};
}

}  // namespace

bool torch_is_at_least(const Circumstances& circumstances, int major, int minor) {
  const std::pair<int, int> version = version_of(circumstances.torch_version);
  return version == std::pair(0, 0) || version >= std::pair(major, minor);
}

std::vector<Snippet> python(std::string lines) { return {{Place::python, lines}, {Place::notebook, lines}}; }

std::vector<Snippet> bash(std::string lines) { return {{Place::bash, std::move(lines)}}; }

std::string workers_of(const Circumstances& circumstances) {
  return circumstances.num_workers ? std::to_string(*circumstances.num_workers) : "num_workers";
}

std::string raised_gib(const std::optional<int64_t>& limit_bytes, std::string_view usual) {
  if (!limit_bytes || *limit_bytes <= 0) return std::string(usual);
  const int64_t twice = 2 * std::min(*limit_bytes, kMaxSizeBytes);
  return std::to_string((twice + kGiB - 1) / kGiB);
}

std::string raised_count(const std::optional<int64_t>& limit, int64_t usual) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return std::to_string(std::max(usual, 2 * std::clamp<int64_t>(limit.value_or(0), 0, kMost)));
}

std::vector<Snippet> loader(const Circumstances& circumstances, std::string_view arguments) {
  const std::string batch = circumstances.batch_size ? std::to_string(*circumstances.batch_size) : "batch_size";
  constexpr size_t kColumns = 72;
  const std::string data = "dataset, batch_size=" + batch + ",";
  const std::string all = data + " " + std::string(arguments) + ")";
  const std::string call = "loader = DataLoader(";
  if (call.size() + all.size() <= kColumns) return python(call + all);
  if (all.size() <= kColumns) return python(call + "\n    " + all);
  return python(call + "\n    " + data + "\n    " + std::string(arguments) + ")");
}

std::vector<Snippet> operator+(std::vector<Snippet> a, const std::vector<Snippet>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Snippet> environment(std::string_view name_text, std::string_view value_text) {
  const std::string name(name_text);
  const std::string value(value_text);
  return {{Place::bash, "export " + name + "=" + value},
          {Place::powershell, "$env:" + name + " = \"" + value + "\""},
          {Place::cmd, "set " + name + "=" + value},
          {Place::python, "import os\nos.environ[\"" + name + "\"] = \"" + value + "\"  # before the first CUDA call"},
          {Place::notebook, "%env " + name + "=" + value},
          {Place::dockerfile, "ENV " + name + "=" + value},
          {Place::sbatch, "export " + name + "=" + value}};
}

std::string_view allocator_variable(const Circumstances& circumstances) {
  // Where the release is not known, the name that all of them read.
  const bool is_new = !circumstances.torch_version.empty() && torch_is_at_least(circumstances, 2, 9);
  if (is_new) return "PYTORCH_ALLOC_CONF";
  return circumstances.is_rocm ? "PYTORCH_HIP_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}

std::string torch_launcher(const Circumstances& circumstances) {
  return torch_is_at_least(circumstances, 1, 10)
             ? "torchrun --nproc_per_node=gpu train.py"
             : "python -m torch.distributed.launch --use_env --nproc_per_node=8 train.py";
}

bool is_gpu_case(const Circumstances& circumstances) {
  switch (circumstances.kind) {
    case Kind::gpu_oom:
    case Kind::gpu_oom_capacity:
    case Kind::gpu_oom_fragmentation:
    case Kind::gpu_oom_other_process:
    case Kind::gpu_oom_first_alloc_or_context:
    case Kind::gpu_lib_alloc_failed:
    case Kind::other_backend_oom:
    case Kind::leak_suspected:
    case Kind::no_failure: return true;
    case Kind::host_oom_killed:
    case Kind::host_alloc_failed:
    case Kind::cgroup_or_slurm_limit:
    case Kind::dataloader_worker_killed:
    case Kind::shm_exhausted:
    case Kind::fd_exhausted:
    case Kind::windows_commit_limit:
    case Kind::not_memory: return false;
  }
  return false;
}

std::string optimizer_class(const Circumstances& circumstances, std::string_view separator) {
  const bool sgd = circumstances.has_momentum_alone;
  return std::string(sgd ? "torch.optim.SGD" : "torch.optim.AdamW") + std::string(separator) +
         (sgd ? "lr=1e-2, momentum=0.9" : "lr=1e-4");
}

bool is_training_case(const Circumstances& circumstances) {
  return is_gpu_case(circumstances) && !circumstances.is_inference && circumstances.phase != Phase::generation &&
         circumstances.phase != Phase::evaluation;
}

bool is_host_case(const Circumstances& circumstances) {
  switch (circumstances.kind) {
    case Kind::host_oom_killed:
    case Kind::host_alloc_failed:
    case Kind::cgroup_or_slurm_limit:
    case Kind::dataloader_worker_killed:
    case Kind::windows_commit_limit:
    case Kind::leak_suspected: return true;
    case Kind::gpu_oom:
    case Kind::gpu_oom_capacity:
    case Kind::gpu_oom_fragmentation:
    case Kind::gpu_oom_other_process:
    case Kind::gpu_oom_first_alloc_or_context:
    case Kind::gpu_lib_alloc_failed:
    case Kind::other_backend_oom:
    case Kind::shm_exhausted:
    case Kind::fd_exhausted:
    case Kind::not_memory:
    case Kind::no_failure: return false;
  }
  return false;
}

bool is_loader_case(const Circumstances& circumstances) {
  return is_host_case(circumstances) || circumstances.kind == Kind::shm_exhausted ||
         circumstances.kind == Kind::fd_exhausted;
}

bool may_have_several_cards(const Circumstances& circumstances) {
  return circumstances.visible_devices.value_or(2) > 1;
}

bool is_among(Phase phase, std::initializer_list<Phase> phases) {
  return phase == Phase::unknown || std::find(phases.begin(), phases.end(), phase) != phases.end();
}

bool is_any_case(const Circumstances&) { return true; }

}  // namespace oomscope
