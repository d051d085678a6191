// `--gpu SIZE|NAME`: how much memory a card has, as its driver reports the total.
//
// The total is less than the card's name says (a "24 GB" RTX 4090 has 23.64 GiB), and the part that the driver's
// context and the libraries take is not off it yet. Numbers come from three kinds of source, and the report says which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace oomscope {

enum class GpuMemorySource {
  given,     // the user wrote a size
  measured,  // bytes that cudaMemGetInfo returned on such a card
  reported,  // from public reports of such a card (an OOM message: two decimals of GiB, or nvidia-smi: MiB)
  nominal,   // as sold; the driver reports some per cent less
};

struct GpuMemory {
  std::string name;  // "A100 80GB"; "--gpu" for a plain size
  int64_t total_bytes = 0;
  GpuMemorySource source = GpuMemorySource::given;
  std::string note;  // where the number is from, or empty
};

// A size as parse_size reads it, or a card's name in any usual spelling ("rtx 4090", "RTX4090", "4090", "a100-80",
// "NVIDIA H100 80GB HBM3"). A bare number that names a card is the card. Errors: gpu-unknown (with a suggestion),
// gpu-ambiguous (lists the sizes), and those of parse_size for what starts like a size.
[[nodiscard]] Result<GpuMemory> resolve_gpu(std::string_view text);

// 80 for sm_80, of the card that a text names ("Tesla V100-SXM2-16GB", "NVIDIA GeForce RTX 3090"); empty: not known.
[[nodiscard]] std::optional<int> compute_capability(std::string_view text);

}  // namespace oomscope
