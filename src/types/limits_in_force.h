// Limits that a case runs under already: what is proposed goes beyond them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace oomscope {

// Each as far as it is known.
struct LimitsInForce {
  std::optional<int64_t> memory_bytes = {};  // of the container, pod or job
  std::optional<int64_t> shm_bytes = {};     // of /dev/shm
  std::optional<int64_t> open_files = {};
  std::optional<int64_t> mappings = {};       // vm.max_map_count
  std::optional<double> engine_share = {};    // vLLM's gpu_memory_utilization, 0 to 1
  std::optional<int64_t> engine_tokens = {};  // its max_model_len
  std::optional<int64_t> engine_sequences = {};
  bool is_host_shm = false;        // a container with --ipc=host has the machine's /dev/shm, whatever its own size
  std::string visible_cards = {};  // CUDA_VISIBLE_DEVICES as it was set, or empty
};

// Of two that are known the larger counts; the cards and the engine's are those of `to`.
inline void merge_limits(const LimitsInForce& from, LimitsInForce& to) {
  const auto raise = [](const auto& value, auto& most) {
    if (value && (!most || *value > *most)) most = value;
  };
  raise(from.memory_bytes, to.memory_bytes);
  raise(from.shm_bytes, to.shm_bytes);
  raise(from.open_files, to.open_files);
  raise(from.mappings, to.mappings);
  to.is_host_shm |= from.is_host_shm;
  if (!to.engine_share) to.engine_share = from.engine_share;
  if (!to.engine_tokens) to.engine_tokens = from.engine_tokens;
  if (!to.engine_sequences) to.engine_sequences = from.engine_sequences;
  if (to.visible_cards.empty()) to.visible_cards = from.visible_cards;
}

}  // namespace oomscope
