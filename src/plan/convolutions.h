// The convolutions of a recording, by their geometry: what a table of measured ones can be asked about.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "plan/conv_table.h"
#include "plan/match_requests.h"

namespace oomscope {

// One pass of one convolution.
struct ConvUse {
  ConvPass pass = ConvPass::forward;
  ConvGeometry geometry;
  uint32_t result = kNoAllocation;   // allocation, behind which scratch is asked for
  uint32_t scratch = kNoAllocation;  // none: it has none
  uint32_t input = kNoAllocation;    // as large as the convolution's input; of a transposed one, its output
  uint32_t output = kNoAllocation;
};

struct Convolutions {
  int64_t element_bytes = 4;
  std::vector<ConvUse> uses;
};

// Those whose geometry follows from the bytes of their operands, in training passes, where a batch has so many images.
// See Note [Shapes from bytes].
[[nodiscard]] Convolutions find_convolutions(const RequestLog& log, const Structure& structure, int64_t batch);

enum class ConvOver : uint8_t { images, transposed_images, sequences };

// How many an image has, or the weight.
struct ConvElements {
  int64_t input = 0;
  int64_t output = 0;
  int64_t weight = 0;
};

// The geometry of a square convolution over square images, or of one over sequences.
// `channels`: numbers of them that there are, against chance and where several geometries have these sizes.
[[nodiscard]] std::optional<ConvGeometry> find_geometry(const ConvElements& elements, ConvOver over,
                                                        const std::set<int64_t>& channels);

}  // namespace oomscope
