// What scratch cuDNN asked for, measured on many convolutions: convolutions.txt.zst, made by
// tools/measure_convolutions.py and tools/tabulate_convolutions.py. See Note [Which kernel a convolution takes].
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace oomscope {

// Where the convolutions were measured.
inline constexpr std::string_view kTableCard = "H200";
inline constexpr std::string_view kTableCudnn = "9.19";
inline constexpr std::string_view kTableTorch = "2.11";

// Formats of the elements, and their order in memory: float32 or 16 bits, channels first or last.
enum class ConvFormat : char { full = 'f', half = 'b', full_channels_last = 'C', half_channels_last = 'c' };

enum class ConvPass : uint8_t { forward, input_gradient, weight_gradient };
inline constexpr size_t kConvPasses = 3;

// What one image is to a convolution. Of a transposed one: the convolution whose gradient it computes.
struct ConvGeometry {
  int32_t inputs = 0;   // channels
  int32_t outputs = 0;  // channels
  int32_t height = 0;   // of the input
  int32_t width = 0;
  int32_t output_height = 0;
  int32_t output_width = 0;
  int32_t kernel_height = 0;
  int32_t kernel_width = 0;
  int32_t groups = 1;

  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;
};

// Bytes of the operands, and how many images they hold.
struct ConvSizes {
  int64_t input = 0;
  int64_t output = 0;
  int64_t weight = 0;
  double batch = 1;
};
[[nodiscard]] int64_t element_bytes(ConvFormat format);
[[nodiscard]] ConvSizes conv_sizes(const ConvGeometry& geometry, ConvFormat format, double batch);

inline constexpr int64_t kMostExtra = 1500;          // bytes besides: semaphores and alignment
inline constexpr double kWinogradShare = 2.25;       // 6 × 6 tiles for 4 × 4 results
inline constexpr int64_t kWinogradWeights = 4;       // 6 × 6 of 3 × 3
inline constexpr int64_t kLeastScratch = 64 * 1024;  // bytes; less cannot move a peak

// Scratch as a formula of the operands' bytes, x and y and w:
//   0  none    a  x + y + n w    x  x + n w    y  y + n w    w  n w    n  n w an image    i  2.25 (x + y) + 4 w
//   q  n (x + y)
// and up to kMostExtra bytes besides.
struct ConvKernel {
  char kind = '0';
  double number = 0;
  int32_t extra = 0;

  friend bool operator==(const ConvKernel&, const ConvKernel&) = default;
};
[[nodiscard]] int64_t scratch_of(const ConvKernel& kernel, const ConvSizes& sizes);

// What a recording shows of a convolution: the scratch that it had at a batch.
struct ConvEvidence {
  double batch = 1;
  int64_t scratch = 0;  // bytes
};

struct ConvQuestion {
  ConvFormat format = ConvFormat::full;
  ConvGeometry geometry;
  int64_t batch = 1;
  ConvPass pass = ConvPass::forward;
  // Of the same convolution at other batches.
  std::vector<ConvEvidence> evidence;
};

// What it may take, the likelier first; shares sum to 1.
struct ConvChoice {
  ConvKernel kernel;
  double share = 0;
};

class ConvTable {
 public:
  // That of the program.
  [[nodiscard]] static const ConvTable& measured();
  // Lines that are none are left out.
  explicit ConvTable(std::string_view text);

  // Empty where no convolution with such a kernel was measured. Linear in those that were.
  [[nodiscard]] std::vector<ConvChoice> choices(const ConvQuestion& question) const;

 private:
  using Kernels = std::array<ConvKernel, kConvPasses>;
  // Of batches from the first to the last, which all took the same kernels.
  struct Run {
    double first = 0;  // powers of two
    double last = 0;
    Kernels kernels;
  };
  struct Row {
    ConvGeometry geometry;
    bool is_dilated = false;
    std::vector<Run> runs;  // ascending
  };
  // Format, kernel, stride and groups: what is unlike in any of these is no neighbour.
  using Kind = std::array<int64_t, 5>;
  static Kind kind_of(ConvFormat format, const ConvGeometry& geometry);
  // The run that batches of 2^n belong to, or the nearest.
  static const Run& run_at(const Row& row, double batch);
  static double distance(const Row& row, double batch, const ConvQuestion& question);

  std::map<Kind, std::vector<Row>> rows_;
};

}  // namespace oomscope
