// context.json: what the Python package knew when a request failed and the snapshot cannot hold
// (docs/formats/context.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oomscope {

// Everything is as good as the file: what is missing or makes no sense is empty. Sizes in bytes.
struct FailureContext {
  std::string snapshot;  // the file's name, beside the context
  std::string gpu_name;
  std::optional<int> device;
  std::optional<int64_t> card_bytes;
  std::optional<int64_t> limit_bytes;   // of set_per_process_memory_fraction
  std::optional<int64_t> own_bytes;     // of this process on the card, as NVML says: allocator and context
  std::optional<int64_t> others_bytes;  // of all other processes; empty if one of them could not be known
};

// Empty where the text is no such file.
[[nodiscard]] std::optional<FailureContext> read_context(std::string_view text);

// The context that lies beside a snapshot and names it.
[[nodiscard]] std::optional<FailureContext> context_beside(const std::string& snapshot_path);

}  // namespace oomscope
