// Note [Shapes from bytes]
//
// A recording holds no shapes, but the backward of a convolution asks for two tensors side by side, the input's
// gradient and the weight's, behind the output's gradient. Three sizes in elements an image, x = c h², y = k p², w = c
// k r², give h p = r sqrt(x y / w): for one of the usual kernel sizes r and strides, h and p are whole numbers, and so
// are c and k. Hardly ever do two geometries have the same three sizes; where they do (a point-wise one over half the
// side with four times the channels, and a 2 × 2 one), and against chance, numbers of channels are those of biases and
// normalisations.
//
//   backward   [y: output's gradient] [x][scratch] [w][scratch]        forward   [x] ... [y][scratch]
//
// Backward runs in the reverse order of forward, so each forward convolution is the last one left whose sizes are its
// own. A transposed one is the same with input and output exchanged, and computes what the other's gradient does. The
// first layer's input needs no gradient: its input is what forward begins with.
#include "plan/convolutions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace oomscope {
namespace {

constexpr size_t kNear = 60;           // tensors back to an operand of forward
constexpr size_t kNearBackward = 16;   // of backward
constexpr double kExplainedPower = 4;  // a tenth unexplained outweighs half as many more
constexpr double kClearly = 1.15;      // better than what is tried before
constexpr size_t kAhead = 40;          // convolutions, in which the order of backward may differ
constexpr int64_t kMostChannels = 8192;
constexpr int64_t kCounterBytes = 8;  // of a normalisation: how often it was updated
constexpr std::array<int64_t, 3> kImageChannels = {3, 1, 4};

// Kernels as they are built; others would be found by chance.
struct Kernel {
  int64_t side;
  int64_t stride;
  int64_t groups = 1;
};
constexpr std::array<Kernel, 20> kKernels = {{{3, 1}, {1, 1},   {3, 2},     {1, 2},     {7, 2}, {7, 1},   {5, 1},
                                              {5, 2}, {11, 4},  {2, 2},     {4, 2},     {4, 4}, {16, 16}, {14, 14},
                                              {8, 8}, {32, 32}, {3, 1, 32}, {3, 2, 32}, {4, 1}, {7, 4}}};
constexpr std::array<Kernel, 12> kSequenceKernels = {
    {{3, 1}, {1, 1}, {3, 2}, {5, 1}, {7, 1}, {2, 2}, {10, 5}, {4, 2}, {5, 2}, {7, 2}, {8, 4}, {9, 1}}};

// In which precision the recording computes: bytes of an element, and of one of a weight.
struct Precision {
  int64_t element;
  int64_t weight;
};
constexpr std::array<Precision, 3> kPrecisions = {{{4, 4}, {2, 4}, {2, 2}}};

// Where x * y * factor / z is a whole square, its root.
std::optional<int64_t> root_of(int64_t x, int64_t y, int64_t factor, int64_t z) {
  const long double exact = static_cast<long double>(x) * static_cast<long double>(y) *
                            static_cast<long double>(factor) / static_cast<long double>(z);
  const int64_t root = std::llround(std::sqrt(exact));
  const long double square = static_cast<long double>(root) * static_cast<long double>(root);
  if (root <= 0 || std::abs(square - exact) > 1e-9L * square) return std::nullopt;
  return root;
}

// Can a kernel of so many rows make `to` rows of `from` with that stride and the same padding on both sides?
bool may_make(int64_t from, int64_t to, int64_t kernel, int64_t stride) {
  const int64_t padding = (to - 1) * stride + kernel - from;  // at least, on both sides; up to stride - 1 more
  const int64_t even = std::max<int64_t>(padding + (padding & 1), 0);
  return even < padding + stride && even <= kernel;
}

// `product`: of the input's side and the output's.
std::optional<ConvGeometry> geometry_of(const ConvElements& elements, int64_t product, const Kernel& kernel,
                                        ConvOver over) {
  const auto [x, y, w] = elements;
  const bool are_images = over != ConvOver::sequences;
  const auto size_of = [&](int64_t side) { return are_images ? side * side : side; };
  const int64_t about = std::llround(std::sqrt(static_cast<double>(product * kernel.stride)));
  for (int64_t from = std::max<int64_t>(about - 8, 1); from <= about + 8; ++from) {
    const int64_t to = product / from;
    if (product % from != 0 || !may_make(from, to, kernel.side, kernel.stride)) continue;
    if (x % size_of(from) != 0 || y % size_of(to) != 0) continue;
    const int64_t inputs = x / size_of(from);
    const int64_t outputs = y / size_of(to);
    if (inputs > kMostChannels || outputs > kMostChannels) continue;
    if (kernel.groups > 1 && (inputs != outputs || inputs % kernel.groups != 0)) continue;
    if (inputs / kernel.groups * outputs * size_of(kernel.side) != w) continue;
    const auto narrow = [](int64_t number) { return static_cast<int32_t>(number); };
    return ConvGeometry{.inputs = narrow(inputs),
                        .outputs = narrow(outputs),
                        .height = are_images ? narrow(from) : 1,
                        .width = narrow(from),
                        .output_height = are_images ? narrow(to) : 1,
                        .output_width = narrow(to),
                        .kernel_height = are_images ? narrow(kernel.side) : 1,
                        .kernel_width = narrow(kernel.side),
                        .groups = narrow(kernel.groups)};
  }
  return std::nullopt;
}

// One kernel a channel.
std::optional<ConvGeometry> depthwise(const ConvElements& elements) {
  const auto [x, y, w] = elements;
  for (int64_t side : {3, 5, 7}) {
    const int64_t channels = w / (side * side);
    if (channels < 8 || w != channels * side * side || x % channels != 0 || y % channels != 0) continue;
    const int64_t from = std::llround(std::sqrt(static_cast<double>(x / channels)));
    const int64_t to = std::llround(std::sqrt(static_cast<double>(y / channels)));
    if (channels * from * from != x || channels * to * to != y) continue;
    if (!may_make(from, to, side, 1) && !may_make(from, to, side, 2)) continue;
    const auto narrow = [](int64_t number) { return static_cast<int32_t>(number); };
    return ConvGeometry{.inputs = narrow(channels),
                        .outputs = narrow(channels),
                        .height = narrow(from),
                        .width = narrow(from),
                        .output_height = narrow(to),
                        .output_width = narrow(to),
                        .kernel_height = narrow(side),
                        .kernel_width = narrow(side),
                        .groups = narrow(channels)};
  }
  return std::nullopt;
}

class ConvFinder {
 public:
  ConvFinder(const RequestLog& log, const Structure& structure, const Precision& precision, ConvOver over,
             int64_t batch)
      : log_(log),
        structure_(structure),
        precision_(precision),
        element_(precision.element),
        over_(over),
        batch_(batch) {
    for (uint32_t id = 0; id < log.verification->timeline.allocations.size(); ++id) {
      const Allocation& allocation = log.verification->timeline.allocations[id];
      if (structure.traits(allocation.stack).role == StackRole::model) weights_.insert(log.requests.size[id]);
    }
    for (size_t i = 0; i < log.order.size(); ++i) {
      if (log.workspace[i]) continue;
      tensors_.push_back(i);
      if (!is_forward(tensors_.size() - 1)) continue;
      if (is_transposed(i)) {
        transposed_.insert(size(i));
      } else {
        outputs_.emplace(size(i), log.order[i]);
      }
    }
    for (int64_t bytes : weights_) {
      const bool is_vector = bytes > kCounterBytes && bytes / precision.weight <= kMostChannels;
      if (is_vector) channels_.insert(bytes / precision.weight);
    }
  }

  Convolutions run() {
    Convolutions found{.element_bytes = element_, .uses = {}};
    if (outputs_.empty() && transposed_.empty()) return found;
    for (size_t k = 0; k < tensors_.size(); ++k) {
      if (is_forward(k)) forward_.push_back(k);
      if (k + 1 < tensors_.size() && phase(k) == Phase::backward && phase(k + 1) == Phase::backward) read_backward(k);
    }
    pair_forward();
    found.uses = std::move(uses_);
    return found;
  }

  // How well what was found fits the recording: much of it, and nearly all of that with its scratch.
  [[nodiscard]] double score(const Convolutions& found) const {
    if (found.uses.empty()) return 0;
    const auto explained = std::count_if(found.uses.begin(), found.uses.end(),
                                         [&](const ConvUse& use) { return explains(use.geometry, use.scratch); });
    const double uses = static_cast<double>(found.uses.size());
    return uses * std::pow(static_cast<double>(explained) / uses, kExplainedPower);
  }

 private:
  // Of one convolution's backward; tensors.
  struct Backward {
    ConvGeometry geometry;
    size_t gradient = 0;  // of the input: where it stands
    int64_t input = 0;    // bytes, as forward reads and makes them
    int64_t output = 0;
    bool is_transposed = false;
    bool is_paired = false;
  };

  [[nodiscard]] int64_t size(size_t position) const { return log_.requests.size[log_.order[position]]; }
  [[nodiscard]] int64_t tensor_size(size_t k) const { return size(tensors_[k]); }
  [[nodiscard]] uint32_t tensor(size_t k) const { return log_.order[tensors_[k]]; }
  [[nodiscard]] const StackTraits& traits(size_t position) const {
    return structure_.traits(log_.verification->timeline.allocations[log_.order[position]].stack);
  }
  [[nodiscard]] Phase phase(size_t k) const {
    const uint32_t event = log_.requests.begin[tensor(k)];
    return event < structure_.span_of.size() ? structure_.span_at(event).phase : Phase::unknown;
  }
  [[nodiscard]] bool is_weight(int64_t bytes) const {
    return weights_.count(bytes / precision_.element * precision_.weight) != 0;
  }
  // Its innermost Python function is the module's own forward, where others' is _conv_forward.
  [[nodiscard]] bool is_transposed(size_t position) const {
    const Snapshot& snapshot = *log_.verification->timeline.snapshot;
    const StackTable& stacks = snapshot.stacks;
    const uint32_t stack = static_cast<uint32_t>(log_.verification->timeline.allocations[log_.order[position]].stack);
    for (uint32_t f = stacks.starts[stack]; f < stacks.starts[stack + 1]; ++f) {
      const Frame& frame = stacks.frames[stacks.frame_ids[f]];
      if (snapshot.strings.text(frame.filename).ends_with("conv.py"))
        return snapshot.strings.text(frame.name) == "forward";
    }
    return false;
  }
  [[nodiscard]] bool is_forward(size_t k) const {
    const bool is_cast = precision_.element < precision_.weight && is_weight(tensor_size(k));  // of a weight
    return traits(tensors_[k]).has(Trait::convolution) && tensor_size(k) >= kLeastScratch && !is_cast;
  }

  [[nodiscard]] std::optional<ConvGeometry> geometry(int64_t input, int64_t output, int64_t weight, ConvOver over,
                                                     const std::set<int64_t>& channels) const {
    const int64_t image = element_ * batch_;
    if (input % image != 0 || output % image != 0) return std::nullopt;
    return find_geometry({input / image, output / image, weight / element_}, over, channels);
  }

  [[nodiscard]] std::optional<ConvGeometry> first_geometry(int64_t input, int64_t output, int64_t weight) const {
    std::set<int64_t> channels(kImageChannels.begin(), kImageChannels.end());
    channels.insert(channels_.begin(), channels_.end());
    const std::optional<ConvGeometry> found = geometry(input, output, weight, over_, channels);
    const bool are_images =
        found && std::find(kImageChannels.begin(), kImageChannels.end(), found->inputs) != kImageChannels.end();
    return are_images && channels_.count(found->outputs) != 0 ? found : std::nullopt;
  }

  [[nodiscard]] uint32_t scratch_behind(size_t k) const {
    const size_t next = tensors_[k] + 1;
    const bool has_scratch = next < log_.order.size() && log_.workspace[next] && size(next) >= kLeastScratch;
    return has_scratch ? log_.order[next] : kNoAllocation;
  }

  [[nodiscard]] std::optional<ConvGeometry> depthwise_geometry(int64_t input, int64_t output, int64_t weight) const {
    const int64_t image = element_ * batch_;
    if (input % image != 0 || output % image != 0) return std::nullopt;
    const auto found = depthwise({input / image, output / image, weight / element_});
    return found && channels_.count(found->inputs) != 0 ? found : std::nullopt;
  }

  void add(ConvPass pass, const ConvGeometry& geometry, size_t result, uint32_t input, uint32_t output) {
    uses_.push_back({.pass = pass,
                     .geometry = geometry,
                     .result = tensor(result),
                     .scratch = scratch_behind(result),
                     .input = input,
                     .output = output});
  }

  // Are tensors k and k + 1 the gradients of a convolution's input and weight?
  void read_backward(size_t k) {
    if (!is_weight(tensor_size(k + 1)) || tensor_size(k) < kLeastScratch) return;
    for (size_t output = k; output-- > 0 && k - output < kNearBackward;) {
      if (const auto found = backward_of(k, tensor_size(output))) return add_backward(*found, tensor(output));
    }
    // The output's gradient may be a part of that of what it was joined to.
    std::optional<Backward> only;
    for (const auto& [bytes, id] : outputs_) {
      const auto found = backward_of(k, bytes);
      if (!found || found->geometry.kernel_width != 3 || channels_.count(found->geometry.outputs) != 0) continue;
      if (only) return;
      only = found;
    }
    if (only) add_backward(*only, outputs_.at(only->output));
  }

  [[nodiscard]] std::optional<Backward> backward_of(size_t k, int64_t output) const {
    Backward found{.geometry = {}, .gradient = k, .input = tensor_size(k), .output = output};
    const int64_t weight = tensor_size(k + 1);
    std::optional<ConvGeometry> shape;
    if (outputs_.count(output) != 0) {
      // PyTorch's own kernels for these need no scratch.
      const bool may_be_depthwise = scratch_behind(k) == kNoAllocation && scratch_behind(k + 1) == kNoAllocation;
      if (may_be_depthwise) shape = depthwise_geometry(found.input, output, weight);
      if (!shape) shape = geometry(found.input, output, weight, over_, channels_);
    }
    if (!shape && over_ == ConvOver::images && transposed_.count(output) != 0) {
      shape = geometry(output, found.input, weight, ConvOver::transposed_images, channels_);
      found.is_transposed = true;
    }
    if (!shape) return std::nullopt;
    found.geometry = *shape;
    return found;
  }

  void add_backward(const Backward& found, uint32_t output) {
    const size_t k = found.gradient;
    const uint32_t from = found.is_transposed ? output : tensor(k);
    const uint32_t to = found.is_transposed ? tensor(k) : output;
    add(found.is_transposed ? ConvPass::forward : ConvPass::input_gradient, found.geometry, k, from, to);
    add(ConvPass::weight_gradient, found.geometry, k + 1, from, to);
    backward_.push_back(found);
  }

  // Convolutions of forward, each with the last one of its sizes in the backward behind it.
  void pair_forward() {
    bool is_first = true;  // of its step: what a cast of the input made may come before it
    for (size_t k : forward_) {
      const auto behind =
          std::find_if(backward_.begin(), backward_.end(), [&](const Backward& b) { return b.gradient > k; });
      auto end = behind;
      while (end != backward_.end() && !is_forward_between(behind->gradient, end->gradient)) ++end;
      if (behind == end) continue;
      is_first = is_first || phase_between(k, Phase::backward);
      if (is_first && read_first_layer(k, std::prev(end)->gradient)) {
        is_first = false;
        continue;
      }
      for (bool must_explain : {true, false}) {
        const bool is_found = pair_with_last(k, behind - backward_.begin(), end - backward_.begin(), must_explain);
        if (is_found) break;
      }
    }
  }

  bool pair_with_last(size_t k, int64_t begin, int64_t end, bool must_explain) {
    size_t looked_at = 0;
    for (int64_t i = end; i-- > begin && looked_at < kAhead;) {
      Backward& backward = backward_[static_cast<size_t>(i)];
      if (backward.is_paired) continue;
      ++looked_at;
      if (pair(k, backward, must_explain)) return true;
    }
    return false;
  }

  // Is any tensor between a convolution's result and the one before it of that phase?
  [[nodiscard]] bool phase_between(size_t k, Phase wanted) const {
    const auto found = std::lower_bound(forward_.begin(), forward_.end(), k);
    for (size_t before = found == forward_.begin() ? 0 : *std::prev(found); before < k; ++before) {
      if (phase(before) == wanted) return true;
    }
    return false;
  }

  // Nothing of the step before is an operand.
  [[nodiscard]] bool is_of_step_before(size_t k) const {
    return phase(k) == Phase::backward || phase(k) == Phase::optimizer_step;
  }

  // Is that scratch copies of these operands and a number of weights?
  [[nodiscard]] bool explains(const ConvGeometry& geometry, uint32_t scratch) const {
    if (scratch == kNoAllocation) return true;
    const int64_t bytes = log_.requests.size[scratch];
    const ConvFormat format = element_ == 2 ? ConvFormat::half : ConvFormat::full;
    const ConvSizes sizes = conv_sizes(geometry, format, static_cast<double>(batch_));
    const std::array<int64_t, 4> copies = {sizes.input + sizes.output, sizes.input, sizes.output, 0};
    return std::any_of(copies.begin(), copies.end(),
                       [&](int64_t copied) { return bytes >= copied && (bytes - copied) % sizes.weight < kMostExtra; });
  }

  bool pair(size_t k, Backward& backward, bool must_explain) {
    if (backward.output != tensor_size(k) || (must_explain && !explains(backward.geometry, scratch_behind(k))))
      return false;
    for (size_t input = k; input-- > 0 && k - input < kNear && !is_of_step_before(input);) {
      if (tensor_size(input) != backward.input) continue;
      if (backward.is_transposed) {
        add(ConvPass::input_gradient, backward.geometry, k, tensor(k), tensor(input));
      } else {
        add(ConvPass::forward, backward.geometry, k, tensor(input), tensor(k));
      }
      backward.is_paired = true;
      return true;
    }
    return false;
  }

  [[nodiscard]] bool is_forward_between(size_t begin, size_t end) const {
    return std::upper_bound(forward_.begin(), forward_.end(), end) -
               std::upper_bound(forward_.begin(), forward_.end(), begin) >
           0;
  }

  // A convolution of forward without a gradient of its input, whose weight's comes at the end of backward.
  bool read_first_layer(size_t k, size_t last) {
    for (size_t weight = last + 2; weight < tensors_.size() && weight < last + kNear; ++weight) {
      if (phase(weight) != Phase::backward) return false;
      if (!is_weight(tensor_size(weight))) continue;
      for (size_t input = k; input-- > 0 && k - input < kNear && !is_of_step_before(input);) {
        if (is_weight(tensor_size(input))) continue;
        const auto shape = first_geometry(tensor_size(input), tensor_size(k), tensor_size(weight));
        if (!shape) continue;
        add(ConvPass::forward, *shape, k, tensor(input), tensor(k));
        add(ConvPass::weight_gradient, *shape, weight, tensor(input), tensor(k));
        return true;
      }
    }
    return false;
  }

  const RequestLog& log_;
  const Structure& structure_;
  std::set<int64_t> weights_;            // sizes of parameters
  std::map<int64_t, uint32_t> outputs_;  // by size of what convolutions return: one of them, an allocation
  std::set<int64_t> transposed_;         // of what transposed ones do
  std::set<int64_t> channels_;           // numbers of them that are likely
  std::vector<size_t> tensors_;          // positions that are no workspace
  std::vector<size_t> forward_;          // tensors that convolutions return
  std::vector<Backward> backward_;
  std::vector<ConvUse> uses_;
  Precision precision_;
  int64_t element_;
  ConvOver over_;
  int64_t batch_;
};

}  // namespace

std::optional<ConvGeometry> find_geometry(const ConvElements& elements, ConvOver over,
                                          const std::set<int64_t>& channels) {
  const auto [input, output, weight] = elements;
  if (input <= 0 || output <= 0 || weight <= 0) return std::nullopt;
  const auto is_difference = [&](int64_t number) {
    return std::any_of(channels.begin(), channels.end(),
                       [&](int64_t part) { return channels.count(number + part) != 0; });
  };
  const auto is_sum = [&](int64_t number) {
    return std::any_of(channels.begin(), channels.end(),
                       [&](int64_t part) { return channels.count(number - part) != 0; });
  };
  // Joined ones are known by their sum alone, or what is joined to others by what that adds.
  const auto is_likely = [&](const std::optional<ConvGeometry>& found) {
    if (!found) return false;
    const bool is_input = channels.count(found->inputs) != 0;
    const bool is_output = channels.count(found->outputs) != 0;
    return (is_input && (is_output || is_difference(found->outputs))) || (is_output && is_sum(found->inputs));
  };
  if (over == ConvOver::sequences) {
    for (const Kernel& kernel : kSequenceKernels) {
      const long double product = static_cast<long double>(input) * static_cast<long double>(output) *
                                  static_cast<long double>(kernel.side) / static_cast<long double>(weight);
      if (product > 1e15L || product != std::floor(product)) continue;
      const auto found = geometry_of(elements, static_cast<int64_t>(product), kernel, over);
      if (is_likely(found)) return found;
    }
    return std::nullopt;
  }
  for (const Kernel& kernel : kKernels) {
    if (over == ConvOver::transposed_images && kernel.side == 1) continue;
    const auto product = root_of(input, output, kernel.side * kernel.side, weight * kernel.groups);
    if (!product) continue;
    const auto found = geometry_of(elements, *product, kernel, over);
    if (is_likely(found)) return found;
  }
  return std::nullopt;
}

Convolutions find_convolutions(const RequestLog& log, const Structure& structure, int64_t batch) {
  // With the wrong precision, or over sequences what is over images, hardly anything comes out whole.
  Convolutions most;
  double best = 0;
  for (ConvOver over : {ConvOver::images, ConvOver::sequences}) {
    for (const Precision& precision : kPrecisions) {
      ConvFinder finder(log, structure, precision, over, batch);
      Convolutions found = finder.run();
      const double score = finder.score(found);
      if (score > kClearly * best) best = score, most = std::move(found);
    }
    if (!most.uses.empty()) break;
  }
  return most;
}

}  // namespace oomscope
