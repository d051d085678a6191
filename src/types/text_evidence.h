// What a log says about memory, as records: one TextMessage for each message found, with its figures in bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/caveat.h"
#include "types/kind.h"
#include "types/limits_in_force.h"

namespace oomscope {

// The figures that messages print, under the names that `why --json` gives them.
enum class Figure : uint8_t {
  tried,                 // what was asked for
  total,                 // the whole card
  allocated,             // handed out by the allocator
  reserved,              // held by the allocator, allocated included
  cached,                // torch 1.0-1.3: held and not handed out
  reserved_unallocated,  // 2.1 on: held and not handed out
  private_pools,         // the part of it that lies in private pools (graphs, MemPool)
  free,                  // of the card, as the driver says
  process_total,         // of this process on the card, context included
  limit,                 // most that may be used: a memory fraction, a cgroup, a watermark
  other_allocations,     // MPS: the system's own
  active,                // NPU
  anon_rss,              // kernel lines, of the process that was killed
  total_vm,
  shmem_rss,
  file_rss,
  rss,
  used,  // of the host
};
constexpr size_t kFigures = 18;

[[nodiscard]] std::string_view name_of(Figure figure);
[[nodiscard]] std::optional<Figure> figure_of(std::string_view name);

// A double, since messages print wrapped-around counters (2^64 bytes) and two decimals at best.
struct PrintedFigures {
  std::array<std::optional<double>, kFigures> values;
  std::vector<double> other_processes;  // on the same card

  [[nodiscard]] const std::optional<double>& operator[](Figure f) const { return values[static_cast<size_t>(f)]; }
  [[nodiscard]] std::optional<double>& operator[](Figure f) { return values[static_cast<size_t>(f)]; }
};

// How the messages group; the rules of src/analysis/ treat a family alike.
enum class Family : uint8_t {
  allocator,      // a GPU allocator's message with figures
  bare_gpu,       // the GPU ran out, no figures
  other_backend,  // MPS, XPU, NPU, JAX, TensorFlow, MXNet ...
  gpu_library,    // cuBLAS, cuDNN, NCCL, bitsandbytes
  engine_start,   // an inference engine that refuses to start
  host_alloc,     // malloc, mmap, fork, numpy
  worker,         // a loader's worker
  shm,
  descriptors,
  kernel,      // the kernel's own lines
  cgroup,      // a container's, pod's or job's limit
  ended,       // a process that was ended by a signal
  windows,     // the commit limit
  device,      // the GPU failed, not for memory: asserts, illegal access
  collective,  // time-outs and broken connections between ranks
  disk,
  by_hand,  // ended on purpose: signals, time limits
  program,  // an error of the program itself: imports, shapes
  note,     // no failure: figures printed beside
};

// A traceback's frame. `code` is the source line, where the log shows it.
struct TextFrame {
  std::string file;
  std::string function;
  std::string code;
  int64_t line = 0;  // in `file`
};

// A line that a run prints while it goes on, or once it is done.
struct RunSign {
  std::string series;  // of its counter: "step", "/100" of a bar
  std::string number;  // of the counter, as printed
  std::string text;
  bool is_finish = false;  // the run says that it is done
  int64_t line = 0;
  int64_t offset_bytes = 0;
};

// A time stamp as printed: of what is cut off behind its last digit it tells nothing.
struct PrintedTime {
  double seconds = 0;     // since 1970, in UTC where the stamp names its zone
  double resolution = 1;  // of its last digit, in seconds
  bool has_zone = false;  // else it is that of a clock whose zone is not known

  friend bool operator==(const PrintedTime&, const PrintedTime&) = default;
};
// Stamps of two clocks say nothing about each other. A little less than the whole digit: seconds are no exact doubles.
[[nodiscard]] inline bool is_surely_before(const PrintedTime& a, const PrintedTime& b) {
  return a.has_zone == b.has_zone && a.seconds + a.resolution * 0.9 <= b.seconds;
}

// What the program says beside a message of what it does about it.
enum class Handling : uint8_t {
  none,
  taken,    // it tries again, skips, reduces the batch
  ignored,  // one of several choices failed, and nothing else
};

struct TextMessage {
  std::string_view id;  // of the template: "cuda.oom"
  std::string_view vintage;
  Family family = Family::note;
  Kind kind = Kind::gpu_oom;
  std::vector<Kind> also;
  int strength = 0;  // 5: says so itself with figures or by name ... 1: a hint; 0: no failure
  PrintedFigures figures;
  std::vector<std::pair<int64_t, double>> processes;  // "Process N has ...": pid and bytes
  std::string backend;                                // CUDA, HIP, XPU ...
  std::string what;                                   // a process's name, a signal, an assertion
  std::optional<int> gpu;
  std::optional<int> rank;
  std::optional<int64_t> pid;
  int64_t line = 0;                 // from 1
  int64_t offset_bytes = 0;         // of its head in the text
  std::string excerpt;              // the message as printed, shortened
  std::string hint;                 // the setting that its hint names, or empty
  std::vector<TextFrame> frames;    // outermost first
  std::string previous_line;        // the one before it that is not empty
  std::optional<PrintedTime> time;  // the last one before its end
  std::vector<std::string> before;  // the last lines before it that tell of progress, oldest first
  std::vector<RunSign> after;       // behind it, in the next KiB
  Handling handling = Handling::none;
  // What stands behind it was printed later: no traceback of standard error that overtook buffered lines.
  bool stands_in_order = true;
};

// One row of memory_summary(): current, peak, allocated in all, freed in all.
struct SummaryRow {
  std::string metric;  // as torch.cuda.memory_stats names it: "allocated_bytes.all"
  std::array<double, 4> values{};
  bool is_count = false;
};
struct MemorySummary {
  int device = 0;
  int64_t line = 0;
  std::vector<SummaryRow> rows;
  int64_t num_ooms = 0;
  int64_t num_alloc_retries = 0;
};

// A card in a listing (nvidia-smi, gpustat).
struct ListedGpu {
  int index = 0;
  std::string name;
  double used_bytes = 0;
  double total_bytes = 0;
};
struct ListedProcess {
  int gpu = 0;
  int64_t pid = 0;
  std::string name;
  double used_bytes = 0;
};

// A row of the table that the kernel prints when it ends a process.
struct HostProcess {
  int64_t pid = 0;
  std::string name;
  double rss_bytes = 0;
};

// What the text tells of the machine and the program.
struct Surroundings {
  std::string torch_version;  // "2.3.1+cu121"
  std::string cuda_version;
  std::vector<ListedGpu> gpus;
  std::string gpu_name;  // as a line of the log or the user names the card
  std::vector<ListedProcess> gpu_processes;
  std::vector<HostProcess> host_processes;
  std::optional<double> host_total_bytes;  // free
  std::optional<double> host_available_bytes;
  std::optional<double> job_limit_bytes;  // of a scheduler's table: what was asked for, and the most that a step used
  std::optional<double> job_used_bytes;
  std::optional<double> shm_total_bytes;  // df of /dev/shm
  std::optional<double> shm_used_bytes;
  std::optional<int> num_workers;
  std::optional<int> prefetch_factor;
  std::optional<int> batch_size;  // samples
  std::optional<bool> pin_memory;
  std::optional<int> ranks_on_host;
  std::optional<double> batch_bytes;  // of a batch as the loader hands it out
  std::string framework;              // as remedies name it: lightning, transformers, accelerate, deepspeed, vllm ...
  std::set<std::string, std::less<>> in_force;  // measures that are taken already, by the ids of their remedies
  LimitsInForce limits;
  bool is_windows = false;
  bool is_cmd = false;          // Windows' older prompt
  bool is_image_build = false;  // of a container: a Dockerfile's steps
  bool is_wsl = false;
  bool is_notebook = false;
  bool is_container = false;
  bool is_slurm = false;
  bool is_rocm = false;
  bool has_sgd = false;  // its optimizer is torch.optim.SGD or as a configuration names it
  bool expandable_segments = false;
};

// Names of logs that are no files: keys of src/words.
inline constexpr std::string_view kStandardInputName = "text.standard-input";
inline constexpr std::string_view kArgumentName = "text.argument";

struct TextEvidence {
  std::string name;         // of the file, or one of the keys above
  std::optional<int> rank;  // as its path tells, rank0/train.log, and the node
  std::optional<int> node;
  std::vector<TextMessage> messages;
  std::map<std::string, int64_t, std::less<>> seen;  // messages of each template, also those beyond the ones kept
  std::vector<MemorySummary> summaries;
  Surroundings surroundings;
  std::vector<RunSign> last_signs;  // of its last KiB
  bool ends_by_launcher = false;    // its last lines are those of a launcher whose process failed
  int64_t size_bytes = 0;
  int64_t lines = 0;
  Caveats caveats;
};

}  // namespace oomscope
