#include "report/proof_lines.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "analysis/rules/log_rule.h"
#include "types/recording_call.h"

namespace oomscope {
namespace {

// "1.12.1" is at least 2.1? An unknown release counts as a current one.
bool torch_is_at_least(const std::string& version, int major, int minor) {
  int first = 0;
  int second = 0;
  const char* end = version.data() + version.size();
  const std::from_chars_result read = std::from_chars(version.data(), end, first);
  if (read.ec != std::errc{}) return true;
  if (read.ptr != end && *read.ptr == '.') std::from_chars(read.ptr + 1, end, second);
  return std::pair(first, second) >= std::pair(major, minor);
}

class ProofLines {
 public:
  ProofLines(const TextFacts& facts, Language language) : facts_(facts), language_(language) {}

  [[nodiscard]] std::vector<std::string> run() const {
    const std::string_view id = facts_.failure == nullptr ? std::string_view{} : facts_.failure->id;
    if (ran_out_of_mappings(facts_)) return {"cat /proc/sys/vm/max_map_count", with("wc -l /proc/PID/maps", "near")};
    switch (facts_.kind) {
      case Kind::gpu_oom:
      case Kind::gpu_oom_capacity:
      case Kind::gpu_oom_fragmentation:
      case Kind::gpu_oom_other_process:
      case Kind::gpu_oom_first_alloc_or_context:
      case Kind::leak_suspected: return of_gpu();
      case Kind::gpu_lib_alloc_failed:
        return {"CUDA_LAUNCH_BLOCKING=1 python train.py",
                "nvidia-smi --query-gpu=memory.used,memory.free --format=csv -l 1"};
      case Kind::other_backend_oom: return of_backend(id);
      case Kind::host_oom_killed:
      case Kind::host_alloc_failed:
      case Kind::dataloader_worker_killed: return of_host();
      case Kind::cgroup_or_slurm_limit:
        if (facts_.around.is_slurm)
          return {"sacct -j JOBID --format=JobID,State,ReqMem,MaxRSS,ExitCode", "sbatch --mem=SIZE ..."};
        return {"cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak", "cat /sys/fs/cgroup/memory.events"};
      case Kind::shm_exhausted: return {"df -h /dev/shm", "ls -l /dev/shm | head"};
      case Kind::fd_exhausted: return {"ulimit -n", "ls /proc/PID/fd | wc -l"};
      case Kind::windows_commit_limit:
        return {"Get-CimInstance Win32_PageFileUsage",
                "Get-Counter '\\Memory\\Committed Bytes','\\Memory\\Commit Limit'"};
      case Kind::not_memory: return of_no_memory();
      case Kind::no_failure: return of_no_failure();
    }
    return {};
  }

 private:
  // A line and, behind it, what is to be known of it.
  [[nodiscard]] std::string with(std::string line, std::string_view comment) const {
    return std::move(line) + "  # " + say("text.proof-" + std::string(comment), language_);
  }

  // A release that records no history still prints its counters.
  [[nodiscard]] std::vector<std::string> of_gpu() const {
    if (!program_beside_torch(facts_).empty())
      return {with("nvidia-smi --query-gpu=memory.free --format=csv -l 1", "beside")};
    std::string version = facts_.around.torch_version;
    if (version.empty() && facts_.failure != nullptr && !facts_.failure->vintage.starts_with("1.0 on"))
      version = facts_.failure->vintage.substr(0, facts_.failure->vintage.find_first_not_of("0123456789."));
    // The one backend that records no history.
    if (facts_.failure != nullptr && facts_.failure->id.starts_with("cuda.async"))
      return {with("PYTORCH_CUDA_ALLOC_CONF=backend:native python train.py", "native"),
              with("torch.cuda.memory._record_memory_history()", "before-first"),
              with("torch.cuda.memory._dump_snapshot(\"oom.pickle\")", "caught")};
    const bool is_open = facts_.failure != nullptr && facts_.failure->vintage.ends_with(" on");  // to newer releases
    if (!torch_is_at_least(version, 1, 4) && !(is_open && facts_.around.torch_version.empty()))
      return {with("print(torch.cuda.memory_allocated(), torch.cuda.memory_cached())", "each-step")};
    if (!torch_is_at_least(version, 2, 0)) return {with("print(torch.cuda.memory_summary())", "each-step")};
    const bool is_new = torch_is_at_least(version, 2, 1);  // 2.0 records one event unless told otherwise
    const std::string arguments(is_new ? "" : kRecordingArgumentsBefore21);
    return {with("torch.cuda.memory._record_memory_history(" + arguments + ")", "before-first"),
            with("torch.cuda.memory._dump_snapshot(\"oom.pickle\")", "caught")};
  }

  [[nodiscard]] std::vector<std::string> of_backend(std::string_view id) const {
    if (id.starts_with("mps"))
      return {with("print(torch.mps.current_allocated_memory())", "each-step"),
              with("print(torch.mps.driver_allocated_memory())", "each-step")};
    const std::string& backend = facts_.failure->backend;
    if (id.starts_with("npu") || backend == "NPU") return {with("print(torch.npu.memory_summary())", "each-step")};
    if (id.starts_with("xpu") || backend == "XPU") return {with("print(torch.xpu.memory_summary())", "each-step")};
    return {};
  }

  [[nodiscard]] std::vector<std::string> of_host() const {
    if (facts_.around.is_windows) return {with("Get-Counter '\\Memory\\Available MBytes' -Continuous", "beside")};
    const std::string watched = with("free -m -s 1 > memory.log &", "beside");
    if (facts_.victim != nullptr) return {watched};
    return {watched, "dmesg -T | grep -iE 'oom|killed process'"};
  }

  // Of a failure that is none of memory: what else shows it.
  [[nodiscard]] std::vector<std::string> of_no_memory() const {
    const TextMessage& failure = *facts_.failure;
    if (failure.family == Family::disk) return {"df -h .", "quota -s"};
    const bool on_device = failure.family == Family::device;
    if (failure.id == "triton.shared")
      return {"print(torch.cuda.get_device_properties(0))", "TRITON_PRINT_AUTOTUNING=1 python train.py"};
    if (failure.id == "ended.time-limit" && facts_.around.is_slurm)
      return {"sacct -j JOBID --format=JobID,State,Elapsed,Timelimit,MaxRSS"};
    if (on_device) return {"CUDA_LAUNCH_BLOCKING=1 python train.py"};
    return {};
  }

  // Where a process vanished, its exit code and the host's memory tell; figures that were printed are the GPU's.
  [[nodiscard]] std::vector<std::string> of_no_failure() const {
    const bool has_summary = std::any_of(facts_.logs.begin(), facts_.logs.end(),
                                         [](const TextEvidence* log) { return !log->summaries.empty(); });
    if (has_summary) return of_gpu();
    if (facts_.outlived() != nullptr) return {};
    return {with("python train.py > train.log 2>&1; echo exit $? >> train.log", "keeps-the-end"),
            with("free -m -s 1 > memory.log &", "beside")};
  }

  const TextFacts& facts_;
  Language language_;
};

}  // namespace

std::vector<std::string> proof_lines(const TextFacts& facts, Language language) {
  return ProofLines(facts, language).run();
}

}  // namespace oomscope
