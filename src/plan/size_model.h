// How the size of one request follows from the quantity that was varied.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace oomscope {

enum class SizeRule : uint8_t {
  constant,      // weights, gradients, states
  proportional,  // activations
  affine,        // with a part that stays
  square,        // attention matrices over the sequence; also with lower terms
  stepwise,      // another kernel at another value: the largest value measured counts
  unseen,        // asked for in one recording alone
};
inline constexpr size_t kSizeRules = static_cast<size_t>(SizeRule::unseen) + 1;
[[nodiscard]] std::string_view name_of(SizeRule rule);

// Bytes = constant + linear * value + square * value².
struct SizeModel {
  SizeRule rule = SizeRule::constant;
  double constant = 0;
  double linear = 0;
  double square = 0;
  [[nodiscard]] int64_t at(double value) const;
};
// Of bytes that hold `share` times what the others hold, and `fixed` besides.
[[nodiscard]] SizeModel sum_of(const std::vector<SizeModel>& others, double share, int64_t fixed);

struct SizePoint {
  double value = 0;
  int64_t size = 0;
};

// The simplest rule that gives every size to within kSizeTolerance; where none does, of the last points alone, and
// where they mean nothing either, proportional to the last.
// `points` ascending in value, at least one.
inline constexpr int64_t kSizeTolerance = 512;  // kernels round their scratch
// `may_be_square`: other sizes of the run are pure squares, so a sum of a square and a line is no accident.
[[nodiscard]] SizeModel fit_size(const std::vector<SizePoint>& points, bool may_be_square);

}  // namespace oomscope
