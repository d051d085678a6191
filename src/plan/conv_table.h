// What scratch cuDNN asked for, measured on many convolutions: convolutions.txt, made by
// tools/measure_convolutions.py and tools/tabulate_convolutions.py. See Note [Which kernel a convolution takes].
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace oomscope {

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

// Scratch as a formula of the operands' bytes, x and y and w:
//   0  none    a  x + y + n w    x  x + n w    y  y + n w    w  n w    n  n w an image    i  2.25 (x + y) + 4 w
//   q  n (x + y)
struct ConvKernel {
  char kind = '0';
  double number = 0;

  friend bool operator==(const ConvKernel&, const ConvKernel&) = default;
};
[[nodiscard]] int64_t scratch_of(const ConvKernel& kernel, const ConvSizes& sizes);

// What a recording shows of a convolution: the scratch that it had at a batch. Of another image: at as much work.
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
  [[nodiscard]] size_t size() const { return rows_.size(); }

 private:
  struct Row {
    ConvFormat format;
    ConvGeometry geometry;
    std::vector<std::pair<int64_t, std::array<ConvKernel, kConvPasses>>> batches;  // ascending
  };
  [[nodiscard]] bool is_alike(const Row& row, const ConvQuestion& question) const;

  std::vector<Row> rows_;
};

}  // namespace oomscope
