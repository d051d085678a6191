#include "plan/size_model.h"

#include <algorithm>
#include <cmath>
#include "types/limits.h"

namespace oomscope {
namespace {

// A size that hardly grows is no sum of two parts but two kernels whose scratch happens to be of a size.
constexpr double kMostConstant = 0.9;

bool fits(const SizeModel& model, const std::vector<SizePoint>& points) {
  return std::all_of(points.begin(), points.end(), [&](const SizePoint& point) {
    // Rounding never makes a constant vary: it is exact or it is none.
    const int64_t tolerance = model.linear == 0 && model.square == 0 ? 0 : kSizeTolerance;
    return std::abs(model.at(point.value) - point.size) <= tolerance;
  });
}

SizeModel constant_at(const SizePoint& p) {
  return {.rule = SizeRule::constant, .constant = static_cast<double>(p.size)};
}

SizeModel through_origin(const SizePoint& p) {
  return {.rule = SizeRule::proportional, .linear = static_cast<double>(p.size) / p.value};
}

SizeModel square_through_origin(const SizePoint& p) {
  return {.rule = SizeRule::square, .square = static_cast<double>(p.size) / (p.value * p.value)};
}

SizeModel line_through(const SizePoint& p, const SizePoint& q) {
  const double slope = static_cast<double>(q.size - p.size) / (q.value - p.value);
  return {.rule = SizeRule::affine, .constant = static_cast<double>(p.size) - slope * p.value, .linear = slope};
}

// linear * value + square * value².
SizeModel square_and_line_through(const SizePoint& p, const SizePoint& q) {
  const double per_p = static_cast<double>(p.size) / p.value;
  const double per_q = static_cast<double>(q.size) / q.value;
  const double square = (per_q - per_p) / (q.value - p.value);
  return {.rule = SizeRule::square, .linear = per_p - square * p.value, .square = square};
}

// The last word where nothing simple fits: what the two largest values say, as far as sizes can mean it.
SizeModel last_two(const SizePoint& p, const SizePoint& q, bool may_be_square) {
  if (q.size == p.size) return constant_at(q);
  for (const SizeModel& model : {through_origin(q), square_through_origin(q), line_through(p, q)}) {
    const bool means_something =
        model.constant >= 0 && model.linear >= 0 && model.constant < kMostConstant * static_cast<double>(q.size);
    if (means_something && fits(model, {p, q})) return model;
  }
  const SizeModel square = square_and_line_through(p, q);
  if (may_be_square && square.linear >= 0 && square.square >= 0) return square;
  SizeModel step = through_origin(q);
  step.rule = SizeRule::stepwise;
  return step;
}

}  // namespace

std::string_view name_of(SizeRule rule) {
  switch (rule) {
    case SizeRule::constant: return "constant";
    case SizeRule::proportional: return "proportional";
    case SizeRule::affine: return "affine";
    case SizeRule::square: return "square";
    case SizeRule::stepwise: return "stepwise";
    case SizeRule::unseen: return "unseen";
  }
  return "unseen";
}

int64_t SizeModel::at(double value) const {
  const double bytes = constant + (linear + square * value) * value;
  return std::llround(std::clamp(bytes, 0.0, static_cast<double>(kMaxSizeBytes)));
}

SizeModel sum_of(const std::vector<SizeModel>& others, double share, int64_t fixed) {
  SizeModel sum{.rule = SizeRule::affine, .constant = static_cast<double>(fixed)};
  for (const SizeModel& other : others) {
    sum.constant += share * other.constant;
    sum.linear += share * other.linear;
    sum.square += share * other.square;
  }
  return sum;
}

SizeModel fit_size(const std::vector<SizePoint>& points, bool may_be_square) {
  const SizePoint& last = points.back();
  if (points.size() == 1) return constant_at(last);
  for (const SizeModel& model : {constant_at(last), through_origin(last), square_through_origin(last)}) {
    if (fits(model, points)) return model;
  }
  if (points.size() > 2) {
    const SizeModel line = line_through(points.front(), last);
    if (line.constant >= 0 && line.linear > 0 && fits(line, points)) return line;
    const SizeModel square = square_and_line_through(points.front(), last);
    if (may_be_square && square.linear >= 0 && square.square > 0 && fits(square, points)) return square;
  }
  return last_two(points[points.size() - 2], last, may_be_square);
}

}  // namespace oomscope
