// Note [Scratch of convolutions]
//
// cuDNN's kernels for large problems compute in channels-last layout on tensor cores. A convolution in PyTorch's
// default layout is given scratch for copies of its operands in that layout, so its bytes are a sum of the sizes beside
// it:
//
//   forward   input + weight [+ output]       gradient of the input   output's gradient + weight + input's gradient
//   gradient of the weight   input + output's gradient + weight, once for each part that the sum is divided into
//
// and a few hundred bytes more. The weight stays, the rest grows with the batch: one recording tells how. The obvious
// way, a line through two recordings, fails where the kernel differs between them, and at small batches it does: for
// small problems there are kernels with less scratch, or with more (Winograd's: 2.25 times both operands and 4 times
// the weight). No rule that we know says from where on they are left: on 19,000 convolutions (H200, cuDNN 9.19,
// torch 2.11), those for large problems were kept at up to eight times the batch by 91 to 100 %, depending on the
// direction, and of the others about half were left at four times the batch. So each block says which kind it is, and
// what it would be as the other.
//
// Example: 64 channels to 64, 3 × 3, images of 128 × 128, a batch of 1: x = y = 4,194,304 bytes, w = 147,456.
//   forward 4,341,776 = x + w + 16; gradient of the weight 19,464,192 = 2.25 (x + y) + 4 w, and at a batch of 4
//   35,766,951 = x + y + 15 w + 679.
//
// Left out: scratch of split sums, of grouped convolutions and of layouts other than the default, about one block in
// six; scaling treats them as any other request. Cost: requests times a constant.
#include "plan/conv_scratch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "plan/bias_scratch.h"
#include "plan/conv_table.h"

namespace oomscope {
namespace {

constexpr int64_t kAlignment = 512;
constexpr size_t kNear = 24;              // requests back to an operand
constexpr int64_t kMostParts = 33;        // of a divided sum
constexpr double kMostWinogradShare = 7;  // of images that tiles reach beyond
constexpr int64_t kTileBytes = 128 * 128 * 4;
constexpr int64_t kLeastParts = 2;
constexpr int64_t kMostCopies = 3;   // what is many times its operands is of a grouped convolution
constexpr int64_t kUsualParts = 15;  // at most, of a sum that is divided for want of tiles
// Up to there kernels for small problems are usual, on the convolutions named above in 81 and in 85 % of cases: of the
// output's gradient where the weight's is computed, of the input's gradient where that is.
constexpr int64_t kWinogradBytes = 4750000;
constexpr int64_t kDirectBytes = 950000;

class Finder {
 public:
  Finder(const RequestLog& log, const Structure& structure) : log_(log), structure_(structure) {
    const size_t count = log.verification->timeline.allocations.size();
    for (uint32_t id = 0; id < count; ++id) {
      const Allocation& allocation = log.verification->timeline.allocations[id];
      if (structure.traits(allocation.stack).role == StackRole::model) weights_.insert(log.requests.size[id]);
    }
    for (size_t i = 0; i < log.order.size(); ++i) {
      if (log.scratch[i]) continue;
      tensors_.push_back(i);
      if (traits(i).has(Trait::convolution)) outputs_.insert(size(i));
    }
  }

  std::vector<ConvScratch> run() {
    std::vector<ConvScratch> found;
    for (size_t k = 0; k < tensors_.size(); ++k) {
      const size_t position = tensors_[k] + 1;
      const bool has_scratch =
          position < log_.order.size() && log_.scratch[position] && size(position) >= kLeastScratch;
      ConvScratch scratch;
      scratch.scratch = has_scratch ? log_.order[position] : kNoAllocation;
      scratch.result = tensor(k);
      if (has_scratch) explain(k, scratch);
      found.push_back(std::move(scratch));
    }
    // With what the explained ones tell of their operands.
    for (size_t k = 0; k < tensors_.size(); ++k) {
      if (!found[k].is_explained && may_be_workspace(found[k])) guess(k, found[k]);
    }
    std::erase_if(found, [](const ConvScratch& scratch) { return !scratch.is_explained && !scratch.may_change; });
    return found;
  }

 private:
  [[nodiscard]] int64_t size(size_t position) const { return log_.requests.size[log_.order[position]]; }
  [[nodiscard]] int64_t tensor_size(size_t k) const { return size(tensors_[k]); }
  [[nodiscard]] uint32_t tensor(size_t k) const { return log_.order[tensors_[k]]; }

  [[nodiscard]] const StackTraits& traits(size_t position) const {
    return structure_.traits(log_.verification->timeline.allocations[log_.order[position]].stack);
  }

  [[nodiscard]] Phase phase(size_t position) const {
    const uint32_t event = log_.requests.begin[log_.order[position]];
    return event < structure_.span_of.size() ? structure_.span_at(event).phase : Phase::unknown;
  }

  // As the model keeps it, or cast to 16 bits.
  [[nodiscard]] bool is_weight(int64_t bytes) const {
    return weights_.count(bytes) != 0 || weights_.count(2 * bytes) != 0;
  }

  [[nodiscard]] bool is_forward(size_t k) const { return traits(tensors_[k]).has(Trait::convolution); }
  [[nodiscard]] bool is_backward(size_t k) const { return phase(tensors_[k]) == Phase::backward; }

  // Behind tensor k.
  void explain(size_t k, ConvScratch& scratch) {
    if (is_forward(k)) {
      explain_forward(k, scratch);
    } else if (is_backward(k) && is_weight(tensor_size(k))) {
      explain_weight_gradient(k, scratch);
    } else if (is_backward(k)) {
      explain_input_gradient(k, scratch);
    }
  }

  void settle(ConvScratch& scratch, std::vector<uint32_t> copied, double share, int64_t fixed) {
    scratch.is_explained = true;
    scratch.size = {.copied = std::move(copied), .share = share, .fixed = fixed};
  }

  void explain_forward(size_t output, ConvScratch& scratch) {
    for (size_t input = output; input-- > 0 && output - input < kNear;) {
      for (int64_t outputs : {int64_t{0}, int64_t{1}}) {
        const int64_t fixed = bytes_of(scratch) - tensor_size(input) - outputs * tensor_size(output);
        const std::optional<int64_t> weight = weight_in(fixed);
        if (!weight) continue;
        known_.insert({tensor_size(input), tensor_size(output), *weight});
        if (outputs == 1) return settle(scratch, {tensor(input), tensor(output)}, 1, fixed);
        settle(scratch, {tensor(input)}, 1, fixed);
        scratch.may_change = true;
        scratch.large = {.copied = {tensor(input), tensor(output)}, .share = 1, .fixed = fixed};
        return;
      }
    }
  }

  // The weight, where so many bytes are one and a little more.
  [[nodiscard]] std::optional<int64_t> weight_in(int64_t bytes) const {
    for (int64_t elements : {1, 2}) {
      const auto above = weights_.upper_bound(bytes * elements);
      if (above == weights_.begin()) continue;
      const int64_t weight = *std::prev(above) / elements;
      if (weight >= kLeastWeight && bytes - weight < kMostExtra) return weight;
    }
    return std::nullopt;
  }

  void explain_input_gradient(size_t input, ConvScratch& scratch) {
    if (input + 1 >= tensors_.size() || !is_weight(tensor_size(input + 1))) return;
    const int64_t weight = tensor_size(input + 1);
    for (size_t output = input; output-- > 0 && input - output < kNear;) {
      if (outputs_.count(tensor_size(output)) == 0) continue;
      const int64_t fixed = bytes_of(scratch) - tensor_size(input) - tensor_size(output);
      if (fixed < 0 || fixed > weight + kMostExtra || fixed % weight > kMostExtra) continue;
      if (fixed >= weight) known_.insert({tensor_size(input), tensor_size(output), weight});
      return settle(scratch, {tensor(input), tensor(output)}, 1, fixed);
    }
  }

  void explain_weight_gradient(size_t gradient, ConvScratch& scratch) {
    if (gradient < 2) return;
    const size_t input = gradient - 1;  // its gradient
    const int64_t weight = tensor_size(gradient);
    const int64_t most_parts = weight >= kLeastScratch ? kMostParts : 1;
    for (size_t output = input; output-- > 0 && input - output < kNear;) {
      if (outputs_.count(tensor_size(output)) == 0) continue;
      const int64_t both = tensor_size(input) + tensor_size(output);
      const int64_t fixed = bytes_of(scratch) - both;
      if (fixed >= 0 && fixed <= most_parts * weight + kMostExtra && fixed % weight <= kMostExtra) {
        return settle(scratch, {tensor(input), tensor(output)}, 1, fixed);
      }
      const bool is_spatial = known_.count({tensor_size(input), tensor_size(output), weight}) != 0;
      const double transformed = static_cast<double>(bytes_of(scratch) - kWinogradWeights * weight);
      const double share = transformed / static_cast<double>(both);
      if (!is_spatial || share < kWinogradShare - 0.01 || share > kMostWinogradShare) continue;
      settle(scratch, {tensor(input), tensor(output)}, share, kWinogradWeights * weight);
      return expect_parts(scratch, input, output, weight);
    }
    // Of a point-wise convolution: one gradient a sample.
    scratch.is_per_sample = bytes_of(scratch) >= 2 * weight && bytes_of(scratch) % weight < kAlignment;
  }

  // The sum is divided until every multiprocessor has a tile of the weight to compute.
  void expect_parts(ConvScratch& scratch, size_t input, size_t output, int64_t weight) const {
    const int64_t tiles = std::max<int64_t>(weight / kTileBytes, 1);
    const int64_t parts = std::clamp((kMultiprocessors + tiles - 1) / tiles, kLeastParts, kUsualParts);
    expect(scratch, input, output, parts * weight);
    scratch.operand = tensor(output);
    scratch.usual_from = kWinogradBytes;
  }

  // Scratch that no sum explains, or none where larger batches have some, of a convolution whose operands are known.
  void guess(size_t k, ConvScratch& scratch) const {
    if (is_forward(k)) {
      if (scratch.scratch != kNoAllocation) guess_forward(k, scratch);
    } else if (is_backward(k) && is_weight(tensor_size(k))) {
      if (scratch.scratch != kNoAllocation && k > 0) guess_backward(k, k - 1, scratch);
    } else if (is_backward(k) && k + 1 < tensors_.size()) {
      guess_backward(k + 1, k, scratch);
    }
  }

  void guess_forward(size_t output, ConvScratch& scratch) const {
    const std::optional<size_t> input = operand_before(output);
    if (!input) return;
    const auto found = known_.lower_bound({tensor_size(*input), tensor_size(output), 0});
    const bool is_known =
        found != known_.end() && (*found)[0] == tensor_size(*input) && (*found)[1] == tensor_size(output);
    expect(scratch, *input, output, is_known ? (*found)[2] : 0);
  }

  void guess_backward(size_t gradient, size_t input, ConvScratch& scratch) const {
    const int64_t weight = tensor_size(gradient);
    const std::optional<size_t> output = operand_before(input);
    if (!output || outputs_.count(tensor_size(*output)) == 0 || !is_weight(weight) ||
        tensor_size(input) < kLeastScratch)
      return;
    if (scratch.result == tensor(gradient)) {
      if (scratch.is_per_sample) return;
      expect_parts(scratch, input, *output, weight);
    } else if (scratch.scratch != kNoAllocation ||
               known_.count({tensor_size(input), tensor_size(*output), weight}) != 0) {
      expect(scratch, input, *output, weight);
      scratch.operand = tensor(input);
      scratch.usual_from = kDirectBytes;
    }
  }

  void expect(ConvScratch& scratch, size_t input, size_t output, int64_t fixed) const {
    const int64_t copies = tensor_size(input) + tensor_size(output);
    const bool is_other = scratch.scratch != kNoAllocation && bytes_of(scratch) > kMostCopies * (copies + fixed);
    if (!scratch.is_explained && is_other) return;
    scratch.may_change = true;
    scratch.large = {.copied = {tensor(input), tensor(output)}, .share = 1, .fixed = fixed};
    // More than the copies: parts of a sum, whose number follows the card.
    if (scratch.is_explained || scratch.scratch == kNoAllocation || bytes_of(scratch) < copies) return;
    scratch.is_explained = true;
    scratch.size = {.copied = scratch.large.copied, .share = 1, .fixed = bytes_of(scratch) - copies};
  }

  // The nearest tensor before another one that may be an operand: not what a normalisation keeps.
  [[nodiscard]] std::optional<size_t> operand_before(size_t k) const {
    for (size_t before = k; before-- > 0 && k - before < kNear;) {
      if (tensor_size(before) >= kLeastScratch && !is_weight(tensor_size(before))) return before;
    }
    return std::nullopt;
  }

  // Tensors are whole rows; workspaces have odd sizes.
  [[nodiscard]] bool may_be_workspace(const ConvScratch& scratch) const {
    return scratch.scratch == kNoAllocation || bytes_of(scratch) % kAlignment != 0;
  }

  [[nodiscard]] int64_t bytes_of(const ConvScratch& scratch) const { return log_.requests.size[scratch.scratch]; }

  static constexpr int64_t kLeastWeight = 1024;

  const RequestLog& log_;
  const Structure& structure_;
  using Operands = std::array<int64_t, 3>;  // bytes of input, output and weight
  std::set<Operands> known_;
  std::set<int64_t> outputs_;    // sizes of what convolutions return
  std::set<int64_t> weights_;    // sizes of parameters
  std::vector<size_t> tensors_;  // positions that are no scratch
};

}  // namespace

std::vector<ConvScratch> find_conv_scratch(const RequestLog& log, const Structure& structure) {
  return Finder(log, structure).run();
}

}  // namespace oomscope
