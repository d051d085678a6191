// Note [Scratch of bias gradients]
//
// The gradient of a linear layer's bias is the sum of [rows, columns] over its rows. Where there are many rows,
// setReduceConfig (aten/src/ATen/native/cuda/Reduce.cuh, torch 1.x to 2.x) divides them between thread blocks, which
// exchange their parts through global memory: 25 MB for 4096 rows of 768. Recordings at small values do not show it,
// and it decides the peak of many an encoder.
//
//   threads a block 512 / vector; a warp over the columns, the rest over the rows (here 32 × 4, vector of 4)
//   values = rows / block rows         below 256 no division
//   parts  = max(min(threads that the card holds / blocks, values / 16), values / 256)
//   scratch = columns * parts * block columns * vector * 4 bytes; semaphores = 4 bytes a block
//
// In a recording it stands with three requests of one linear layer's backward, whose ratios tell rows and columns:
// weight / bias = inputs, input's gradient / inputs = rows times bytes an element. Their order is the input's gradient,
// the weight's, the bias's; or, of a layer that makes queries, keys and values at once, the bias's first:
//
//   [input's gradient][weight's][bias's][scratch, semaphores]      [bias's][scratch, semaphores][weight's][input's]
//
// Whether an element has 2 bytes or 4 is told by what normalisation layers keep, 4 bytes a row twice over, or by
// scratch that is there. Layers whose input needs no gradient are not found. The card is taken to have as many
// multiprocessors as H100 and H200; on others the scratch of very many rows differs.
#include "plan/bias_scratch.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace oomscope {
namespace {

constexpr int64_t kThreadsAMultiprocessor = 2048;
constexpr int64_t kMostThreads = 512;
constexpr int64_t kWarp = 32;
constexpr int64_t kLeastValues = 16;
constexpr int64_t kMostValues = 256;
constexpr int64_t kAccumulatorBytes = 4;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t power_of_two_below(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

}  // namespace

SumScratch sum_scratch(int64_t rows, int64_t columns) {
  if (rows <= 0 || columns <= 0) return {};
  const int64_t vector = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
  const int64_t most_threads = kMostThreads / vector;
  const int64_t across = std::min(power_of_two_below(columns / vector), most_threads);
  const int64_t down = std::min(power_of_two_below(rows), most_threads);
  int64_t width = std::min(across, kWarp);
  const int64_t height = std::min(down, most_threads / width);
  width = std::min(across, most_threads / height);
  const int64_t values = divide_up(rows, height);
  const int64_t blocks = divide_up(columns / vector, width);
  const int64_t held = kMultiprocessors * (kThreadsAMultiprocessor / (width * height));
  if (values < kMostValues || blocks > held) return {};
  const int64_t parts =
      std::max(std::min(divide_up(held, blocks), divide_up(values, kLeastValues)), divide_up(values, kMostValues));
  if (parts <= 1) return {};
  return {.scratch_bytes = columns * parts * width * vector * kAccumulatorBytes, .semaphore_bytes = 4 * blocks};
}

namespace {

class SumFinder {
 public:
  SumFinder(const RequestStream& requests, const Structure& structure) : requests_(requests), structure_(structure) {
    for (size_t i = 0; i < requests.kind.size(); ++i) {
      if (requests.kind[i] == RequestKind::malloc) order_.push_back(requests.id[i]);
    }
    bool has_begun = false;
    for (size_t i = 0; i < order_.size(); ++i) {
      has_begun = has_begun || phase(i) == Phase::forward;
      if (!has_begun && phase(i) != Phase::data_loading) before_.insert(size(i));
      if (i > 0 && size(i) == size(i - 1) && phase(i) == Phase::forward) ++twins_[size(i)];
    }
  }

  std::vector<BiasSum> run() const {
    std::vector<BiasSum> sums;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (phase(i) != Phase::backward) continue;
      BiasSum sum;
      const bool is_last = i >= 2 && (with_scratch(i, i - 1, i - 2, sum) || without(i, i - 1, i - 2, sum));
      const bool is_first = !is_last && (with_scratch(i, i + 3, i + 4, sum) || without(i, i + 1, i + 2, sum)) &&
                            sum.columns == 3 * sum.inputs;
      if (is_last || is_first) sums.push_back(sum);
    }
    return sums;
  }

 private:
  [[nodiscard]] int64_t size(size_t i) const { return requests_.size[order_[i]]; }

  [[nodiscard]] Phase phase(size_t i) const {
    const uint32_t event = requests_.begin[order_[i]];
    return event < structure_.span_of.size() ? structure_.span_at(event).phase : Phase::unknown;
  }

  // As large as what was there before the first forward, or that in 16 bits; where nothing was, anything may be.
  [[nodiscard]] bool may_be_parameter(int64_t bytes) const {
    return before_.empty() || before_.count(bytes) != 0 || before_.count(2 * bytes) != 0;
  }

  // Is request i the gradient of a bias, with the scratch of its sum behind it?
  bool with_scratch(size_t i, size_t weight, size_t input, BiasSum& sum) const {
    return (read_sum(i, weight, input, 4, sum) && has_scratch(i, sum)) ||
           (read_sum(i, weight, input, 2, sum) && has_scratch(i, sum));
  }

  bool without(size_t i, size_t weight, size_t input, BiasSum& sum) const {
    return (read_sum(i, weight, input, 4, sum) && needs_none(sum, 4)) ||
           (read_sum(i, weight, input, 2, sum) && needs_none(sum, 2));
  }

  // May request i be the gradient of a bias of `element_bytes` an element, with those of its weight and its input?
  bool read_sum(size_t i, size_t weight_at, size_t input_at, int64_t element_bytes, BiasSum& sum) const {
    if (weight_at >= order_.size() || input_at >= order_.size()) return false;
    const int64_t bias = size(i);
    const int64_t weight = size(weight_at);
    const int64_t input = size(input_at);
    if (bias <= 0 || bias % element_bytes != 0 || weight % bias != 0) return false;
    if (!may_be_parameter(bias) || !may_be_parameter(weight)) return false;
    const int64_t inputs = weight / bias;
    if (inputs < 2 || input % (inputs * element_bytes) != 0) return false;
    sum.gradient = order_[i];
    sum.input_gradient = order_[input_at];
    sum.inputs = inputs;
    sum.columns = bias / element_bytes;
    sum.rows = input / (inputs * element_bytes);
    sum.scratch = sum.semaphores = kNoAllocation;
    return true;
  }

  bool has_scratch(size_t i, BiasSum& sum) const {
    const SumScratch expected = sum_scratch(sum.rows, sum.columns);
    if (expected.scratch_bytes == 0 || i + 2 >= order_.size()) return false;
    if (size(i + 1) != expected.scratch_bytes || size(i + 2) != expected.semaphore_bytes) return false;
    sum.scratch = order_[i + 1];
    sum.semaphores = order_[i + 2];
    return true;
  }

  [[nodiscard]] bool needs_none(const BiasSum& sum, int64_t element_bytes) const {
    return sum_scratch(sum.rows, sum.columns).scratch_bytes == 0 && has_twins(sum.rows, element_bytes);
  }

  // A normalisation layer keeps two floats a row: more such pairs than there would be for the other element size.
  [[nodiscard]] bool has_twins(int64_t rows, int64_t element_bytes) const {
    const auto pairs = [&](int64_t count) {
      const auto found = twins_.find(4 * count);
      return found == twins_.end() ? 0 : found->second;
    };
    const int64_t other_rows = element_bytes == 4 ? rows * 2 : rows / 2;
    return pairs(rows) > 0 && pairs(rows) > pairs(other_rows);
  }

  const RequestStream& requests_;
  const Structure& structure_;
  std::vector<uint32_t> order_;
  std::set<int64_t> before_;          // sizes of what was there before the first forward, batches aside
  std::map<int64_t, int64_t> twins_;  // by size: requests of forward that follow one of the same size
};

}  // namespace

std::vector<BiasSum> find_bias_sums(const RequestStream& requests, const Structure& structure) {
  return SumFinder(requests, structure).run();
}

}  // namespace oomscope
