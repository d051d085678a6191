// AllocatorSettings: what PYTORCH_ALLOC_CONF (older name PYTORCH_CUDA_ALLOC_CONF) tells PyTorch's caching allocator,
// read exactly as PyTorch reads it, and written back.
//
// Sources: c10/core/AllocatorConfig.{h,cpp} (parseArgs and ConfigTokenizer) and c10/cuda/CUDAAllocatorConfig.{h,cpp}
// of torch 2.10 to 2.13; CUDAAllocatorConfig.cpp (lexArgs, consumeToken, parseArgs) of torch 2.0 to 2.9.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/caveat.h"
#include "base/result.h"
#include "types/snapshot.h"

namespace oomscope {

constexpr int64_t kUnlimitedBytes = std::numeric_limits<int64_t>::max();
constexpr int64_t kDefaultLargeSegmentBytes = 20971520;

// The defaults are PyTorch's own; equal settings make the allocator behave equally.
struct AllocatorSettings {
  int64_t max_split_size_bytes = kUnlimitedBytes;
  int64_t max_non_split_rounding_bytes = kDefaultLargeSegmentBytes;  // follows large_segment_size unless set
  int64_t large_segment_size_bytes = kDefaultLargeSegmentBytes;      // 2.11 on; also the large expandable page
  double garbage_collection_threshold = 0;                           // 0 = off
  // Entry k serves requests in [2^k, 2^(k+1)) MiB; entry 0 also all below, entry 15 also all above. 0 = off.
  std::array<int64_t, 16> roundup_power2_divisions{};
  bool expandable_segments = false;
  bool release_lock_on_cudamalloc = false;
  bool graph_capture_record_stream_reuse = false;
  double per_process_memory_fraction = 1.0;  // 2.10 on; read once, when the device's allocator is made
  bool throw_on_cudamalloc_oom = false;      // 2.12 on
  std::string backend = "native";            // or "cudaMallocAsync", which has no blocks to model
  // Host memory only; kept so that a conf string survives being read and written.
  bool pinned_use_cuda_host_register = false;
  bool pinned_use_background_threads = false;
  int64_t pinned_num_register_threads = 1;
  int64_t pinned_reserve_segment_size_mb = 0;
  bool operator==(const AllocatorSettings&) const = default;
};

// The two parsers that PyTorch has had since 2.0. They differ in errors, minima, separators and where `>` fills from.
enum class SettingsParser {
  torch_2_0,  // CUDAAllocatorConfig alone: torch 2.0 to 2.9
  unified,    // AcceleratorAllocatorConfig, then CUDAAllocatorConfig: torch 2.10 on
};

struct ParsedSettings {
  AllocatorSettings settings;
  Caveats warnings;  // where PyTorch silently ignores, cuts or reads otherwise than its documentation says
};

// Starts from the defaults, as a fresh process does. On an error `what` is PyTorch's own message. Codes:
// settings-unknown-key, settings-bad-value, settings-syntax, settings-too-long (over 64 KiB).
[[nodiscard]] Result<ParsedSettings> parse_allocator_settings(std::string_view conf, SettingsParser parser);

// The shortest string that `parser` reads as these settings; "" for the defaults. Sizes must be whole MiB and
// divisions powers of two, as every parsed setting is.
[[nodiscard]] std::string to_conf_string(const AllocatorSettings& settings,
                                         SettingsParser parser = SettingsParser::unified);

// The settings at the time of the dump: the parsed values that the snapshot carries, and from its conf string the keys
// that PyTorch does not record (large_segment_size_mb, max_non_split_rounding_mb, per_process_memory_fraction, ...).
// A string that does not parse, or says otherwise than the recorded values, becomes a caveat, never an error.
[[nodiscard]] ParsedSettings from_recorded(const RecordedSettings& recorded, SettingsParser parser);

}  // namespace oomscope
