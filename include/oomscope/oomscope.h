// oomscope as a library: the answers of the commands as JSON, and exact replay as plain values.
//
//     find_package(oomscope REQUIRED)
//     target_link_libraries(my_tool PRIVATE oomscope::oomscope)
//
// Nothing here throws, reads the environment or writes anywhere. The JSON is that of the command line
// (docs/formats/json.md). All sizes are in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace oomscope::api {

// An empty `code` means success. `code` is stable and kebab-case; `what` is one sentence, `hint` the next step.
struct Status {
  std::string code;
  std::string what;
  std::string where;
  std::string hint;
  [[nodiscard]] bool ok() const { return code.empty(); }
};

struct WhyOptions {
  std::optional<int64_t> cap_bytes;   // the limit the job ran under
  std::optional<int64_t> card_bytes;  // the whole card
  int device = -1;                    // -1: the only one with events
  int threads = 1;
};

struct JsonAnswer {
  Status status;
  std::string json;  // oomscope.why/1
};

// Why did it run out, and what would have made it fit? `path` is a snapshot as torch.cuda.memory._dump_snapshot writes
// it, plain or packed.
[[nodiscard]] JsonAnswer why(const std::string& path, const WhyOptions& options = {});

struct ReplayOptions {
  std::optional<std::string> conf;   // PYTORCH_CUDA_ALLOC_CONF; empty optional: the recorded settings
  std::optional<int64_t> cap_bytes;  // the most the allocator may reserve
  int device = -1;
};

struct ReplayAnswer {
  Status status;
  bool recording_exact = false;  // the recording itself was reproduced event by event
  bool completed = false;
  int64_t peak_requested = 0;
  int64_t peak_allocated = 0;
  int64_t peak_reserved = 0;
  int64_t peak_reserved_low = 0;  // over where a driver may put segments
  int64_t peak_reserved_high = 0;
  int64_t num_device_alloc = 0;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
};

// What would have happened to the same requests?
[[nodiscard]] ReplayAnswer replay(const std::string& path, const ReplayOptions& options = {});

}  // namespace oomscope::api
