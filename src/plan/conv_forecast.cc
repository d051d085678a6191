#include "plan/conv_forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

namespace oomscope {
namespace {

constexpr double kLeastAgreement = 0.6;  // below, the recording is of another card or cuDNN
constexpr double kSure = 0.9;            // share of the votes
constexpr double kNotUnlikely = 0.1;

auto key_of(const RecordedConv& conv) {
  const ConvGeometry& g = conv.use.geometry;
  return std::tuple(conv.use.pass, g.inputs, g.outputs, g.height, g.width, g.output_height, g.output_width,
                    g.kernel_height, g.kernel_width, g.groups, conv.evidence.empty() ? 0 : conv.evidence[0].scratch);
}

}  // namespace

std::optional<ConvForecast> ConvForecast::make(std::vector<RecordedConv> convolutions, int64_t element_bytes,
                                               int64_t batch) {
  ConvForecast forecast;
  forecast.convolutions_ = std::move(convolutions);
  forecast.batch_ = batch;
  forecast.find_groups();
  if (forecast.convolutions_.empty()) return std::nullopt;
  // The bytes do not say in which order elements lie in memory; the scratch does.
  const std::array<ConvFormat, 2> formats = element_bytes == 4
                                                ? std::array{ConvFormat::full, ConvFormat::full_channels_last}
                                                : std::array{ConvFormat::half, ConvFormat::half_channels_last};
  ConvFormat best = formats[0];
  for (ConvFormat format : formats) {
    const double agreement = forecast.agreement_in(format);
    if (agreement > forecast.agreement_) forecast.agreement_ = agreement, best = format;
  }
  if (forecast.agreement_ < kLeastAgreement) return std::nullopt;
  forecast.format_ = best;
  return forecast;
}

void ConvForecast::find_groups() {
  std::map<decltype(key_of(convolutions_.front())), size_t> first;
  for (size_t i = 0; i < convolutions_.size(); ++i)
    groups_.push_back(first.emplace(key_of(convolutions_[i]), i).first->second);
}

double ConvForecast::agreement_in(ConvFormat format) {
  format_ = format;
  int64_t same = 0;
  int64_t all = 0;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    if (groups_[i] != i || convolutions_[i].evidence.empty()) continue;
    ConvQuestion asked = question(i, batch_);
    asked.evidence.clear();
    const std::vector<ConvChoice> choices = ConvTable::measured().choices(asked);
    if (choices.empty()) continue;
    const ConvSizes sizes = conv_sizes(asked.geometry, format_, static_cast<double>(asked.batch));
    int64_t told = scratch_of(choices.front().kernel, sizes);
    if (told < kLeastScratch) told = 0;
    all += 1;
    same += std::abs(told - convolutions_[i].evidence[0].scratch) <= kMostExtra ? 1 : 0;
  }
  return all == 0 ? 0 : static_cast<double>(same) / static_cast<double>(all);
}

ConvQuestion ConvForecast::question(size_t index, int64_t batch) const {
  const RecordedConv& conv = convolutions_[index];
  return {.format = format_,
          .geometry = conv.use.geometry,
          .batch = batch,
          .pass = conv.use.pass,
          .evidence = conv.evidence};
}

ConvForecast::Choices ConvForecast::choices(size_t index, int64_t batch) const {
  const std::pair<size_t, int64_t> key(groups_[index], batch);
  {
    const std::lock_guard lock(known_->mutex);
    const auto found = known_->choices.find(key);
    if (found != known_->choices.end()) return found->second;
  }
  auto made =
      std::make_shared<const std::vector<ConvChoice>>(ConvTable::measured().choices(question(key.first, batch)));
  const std::lock_guard lock(known_->mutex);
  return known_->choices.emplace(key, std::move(made)).first->second;
}

int64_t ConvForecast::bytes(size_t index, const ConvKernel& kernel, int64_t batch, OperandBytes operands) const {
  const ConvQuestion asked = question(index, batch);
  ConvSizes sizes = conv_sizes(asked.geometry, format_, static_cast<double>(asked.batch));
  sizes.input = operands.input;
  sizes.output = operands.output;
  const int64_t told = scratch_of(kernel, sizes);
  return told < kLeastScratch ? 0 : told;
}

bool ConvForecast::is_sure(size_t index, int64_t batch) const {
  const Choices known = choices(index, batch);
  return !known->empty() && known->front().share >= kSure;
}

bool ConvForecast::is_sure(int64_t batch) const {
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    if (groups_[i] == i && !is_sure(i, batch)) return false;
  }
  return true;
}

int64_t ConvForecast::scratch(size_t index, int64_t batch, OperandBytes operands, double lot) const {
  const Choices known = choices(index, batch);
  if (known->empty()) return 0;
  size_t chosen = 0;
  if (lot >= 0 && known->front().share < kSure) {
    double sum = known->front().share;
    while (chosen + 1 < known->size() && lot > sum) sum += (*known)[++chosen].share;
  }
  return bytes(index, (*known)[chosen].kernel, batch, operands);
}

ConvForecast::Range ConvForecast::range(size_t index, int64_t batch, OperandBytes operands) const {
  const Choices known = choices(index, batch);
  if (known->empty()) return {};
  const int64_t likeliest = bytes(index, known->front().kernel, batch, operands);
  Range range{.low = likeliest, .high = likeliest};
  for (const ConvChoice& choice : *known) {
    if (choice.share < kNotUnlikely) continue;
    const int64_t other = bytes(index, choice.kernel, batch, operands);
    range = {.low = std::min(range.low, other), .high = std::max(range.high, other)};
  }
  return range;
}

}  // namespace oomscope
