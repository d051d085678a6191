// Note [Which kernel a convolution takes]
//
// cuDNN chooses among dozens of kernels by a heuristic that nobody outside knows, and their scratch differs by factors:
// for 64 channels of 56 × 56 from a batch of 4 to one of 48 it goes from a copy of the input to copies of input and
// output. No rule of a few numbers says where (of 19,000 convolutions the best that we found names the kernel in 88 %),
// but what was measured does, for the convolutions that were, and for others their neighbours do. So the program
// carries a table of what was measured on a card, and asks:
//
//   exactly this one?   the geometry at that batch: then that is it
//   else the nearest    by work (batch × output), channels and image, in powers of two; a neighbour that shows at the
//                       recorded batches what the recording shows there is nearer than one that does not
//
// The nearest few vote, so that it is known where they do not agree. Neighbours have the same kernel size, stride and
// groups.
#include "plan/conv_table.h"

#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "plan/packed_conv_table.h"

namespace oomscope {
namespace {

constexpr size_t kVotes = 5;
constexpr double kSame = 1e-9;        // distance
constexpr double kImageShare = 0.3;   // the image's side decides less than the work
constexpr double kUnmeasured = 0.25;  // distance of evidence that nothing measured bears on
constexpr double kNearBatch = 0.6;    // in powers of two: of about that batch
constexpr double kDilated = 0.02;     // distance of what the bytes do not show, and hardly any convolution is
constexpr double kSharpness = 0.1;    // votes fall with the square of the distance beyond it

double log2_of(double number) { return std::log2(std::max(number, 1e-9)); }

// Empty where it is damaged.
std::string unpacked(std::string_view packed) {
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) return {};
  std::string text(size, '\0');
  const size_t written = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  return ZSTD_isError(written) != 0 ? std::string() : text;
}

// The next word of a text, up to a separator.
std::string_view word(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view found = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return found;
}

template <typename Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_kernel(std::string_view text, ConvKernel& kernel) {
  if (text.empty()) return false;
  kernel.kind = text[0];
  text.remove_prefix(1);
  const std::string_view number = word(text, '+');
  return (number.empty() || read(number, kernel.number)) && (text.empty() || read(text, kernel.extra));
}

// "1-4:x1+16,a1,i"
template <typename Run>
bool read_run(std::string_view text, Run& run) {
  std::string_view batches = word(text, ':');
  for (ConvKernel& kernel : run.kernels) {
    if (!read_kernel(word(text, ','), kernel)) return false;
  }
  int64_t first = 0;
  int64_t last = 0;
  if (!read(word(batches, '-'), first) || !read(batches, last) || first <= 0 || last < first) return false;
  run.first = log2_of(static_cast<double>(first));
  run.last = log2_of(static_cast<double>(last));
  return true;
}

// How far apart two amounts of scratch are: 0 where they are the same, at most 1.
double unlikeness(int64_t a, int64_t b) {
  if (std::abs(a - b) <= kMostExtra) return 0;
  return static_cast<double>(std::abs(a - b)) / static_cast<double>(std::max(a, b));
}

double side_of(const ConvGeometry& g) { return 0.5 * (log2_of(g.output_height) + log2_of(g.output_width)); }

}  // namespace

int64_t element_bytes(ConvFormat format) {
  return format == ConvFormat::half || format == ConvFormat::half_channels_last ? 2 : 4;
}

ConvSizes conv_sizes(const ConvGeometry& g, ConvFormat format, double batch) {
  const int64_t element = element_bytes(format);
  const auto of_images = [&](int64_t elements) {
    return std::llround(batch * static_cast<double>(element * elements));
  };
  return {.input = of_images(int64_t{g.inputs} * g.height * g.width),
          .output = of_images(int64_t{g.outputs} * g.output_height * g.output_width),
          .weight = element * g.outputs * std::max<int64_t>(g.inputs / g.groups, 1) * g.kernel_height * g.kernel_width,
          .batch = batch};
}

int64_t scratch_of(const ConvKernel& kernel, const ConvSizes& sizes) {
  const double both = static_cast<double>(sizes.input) + static_cast<double>(sizes.output);
  const double weights = kernel.number * static_cast<double>(sizes.weight);
  double bytes = 0;
  switch (kernel.kind) {
    case 'a': bytes = both + weights; break;
    case 'x': bytes = static_cast<double>(sizes.input) + weights; break;
    case 'y': bytes = static_cast<double>(sizes.output) + weights; break;
    case 'w': bytes = weights; break;
    case 'n': bytes = weights * sizes.batch; break;
    case 'i': bytes = kWinogradShare * both + kWinogradWeights * static_cast<double>(sizes.weight); break;
    case 'q': bytes = kernel.number * both; break;
    default: break;
  }
  return std::llround(bytes) + kernel.extra;
}

ConvTable::ConvTable(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = word(text, '\n');
    const std::string_view format = word(line, ' ');
    Row row;
    ConvGeometry& g = row.geometry;
    int32_t dilation = 0;
    bool is_good = format.size() == 1;
    for (int32_t* number : {&g.inputs, &g.outputs, &g.height, &g.width, &g.output_height, &g.output_width,
                            &g.kernel_height, &g.kernel_width, &g.groups, &dilation}) {
      is_good = is_good && read(word(line, ' '), *number) && *number > 0;
    }
    row.is_dilated = dilation > 1;
    while (is_good && !line.empty()) is_good = read_run(word(line, ' '), row.runs.emplace_back());
    if (!is_good || row.runs.empty()) continue;
    rows_[kind_of(static_cast<ConvFormat>(format[0]), g)].push_back(std::move(row));
  }
}

ConvTable::Kind ConvTable::kind_of(ConvFormat format, const ConvGeometry& g) {
  const int64_t stride = std::lround(static_cast<double>(g.width) / g.output_width);
  const int64_t grouping = g.groups == 1 ? 1 : g.groups == g.inputs ? 0 : g.groups;
  return {static_cast<int64_t>(format), g.kernel_height, g.kernel_width, stride, grouping};
}

const ConvTable::Run& ConvTable::run_at(const Row& row, double batch) {
  return *std::min_element(row.runs.begin(), row.runs.end(), [&](const Run& a, const Run& b) {
    return std::abs(std::clamp(batch, a.first, a.last) - batch) < std::abs(std::clamp(batch, b.first, b.last) - batch);
  });
}

// Of a row's batch to what is asked for, its geometry aside: by the work, and by what the recording shows.
double ConvTable::distance(const Row& row, double batch, const ConvQuestion& question) {
  const size_t pass = static_cast<size_t>(question.pass);
  const double asked = log2_of(static_cast<double>(question.batch));
  double distance = std::abs(batch + 2 * side_of(row.geometry) - asked - 2 * side_of(question.geometry));
  for (const ConvEvidence& evidence : question.evidence) {
    // At the batch there that is to this one as the recording's is to the one asked for.
    const double wanted = batch + log2_of(evidence.batch) - asked;
    const Run& there = run_at(row, wanted);
    const ConvSizes sizes = conv_sizes(question.geometry, question.format, evidence.batch);
    const bool is_there = std::abs(std::clamp(wanted, there.first, there.last) - wanted) < kNearBatch;
    distance += is_there ? unlikeness(scratch_of(there.kernels[pass], sizes), evidence.scratch) : kUnmeasured;
  }
  return distance;
}

const ConvTable& ConvTable::measured() {
  static const ConvTable table(unpacked(packed_conv_table()));
  return table;
}

std::vector<ConvChoice> ConvTable::choices(const ConvQuestion& question) const {
  const ConvGeometry& g = question.geometry;
  const auto alike = rows_.find(kind_of(question.format, g));
  if (alike == rows_.end()) return {};
  std::vector<std::pair<double, ConvKernel>> near;  // the nearest first, one a row
  for (const Row& row : alike->second) {
    const ConvGeometry& other = row.geometry;
    const double channels = std::abs(log2_of(other.inputs) - log2_of(g.inputs)) +
                            std::abs(log2_of(other.outputs) - log2_of(g.outputs)) +
                            kImageShare * std::abs(side_of(other) - side_of(g)) + (row.is_dilated ? kDilated : 0);
    if (near.size() == kVotes && channels > near.back().first) continue;
    const double wanted = log2_of(static_cast<double>(question.batch)) + 2 * (side_of(g) - side_of(other));
    double best = INFINITY;
    ConvKernel kernel;
    for (const Run& run : row.runs) {
      const double far = channels + distance(row, std::clamp(wanted, run.first, run.last), question);
      if (far < best) best = far, kernel = run.kernels[static_cast<size_t>(question.pass)];
    }
    near.emplace_back(best, kernel);
    std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (near.size() > kVotes) near.pop_back();
  }
  std::vector<ConvChoice> choices;
  double total = 0;
  for (const auto& [distance, kernel] : near) {
    if (distance > kSame && near.front().first <= kSame) continue;
    const double vote = 1 / ((kSharpness + distance) * (kSharpness + distance));
    total += vote;
    const auto known = std::find_if(choices.begin(), choices.end(),
                                    [&same = kernel](const ConvChoice& choice) { return choice.kernel == same; });
    if (known == choices.end()) {
      choices.push_back({.kernel = kernel, .share = vote});
    } else {
      known->share += vote;
    }
  }
  for (ConvChoice& choice : choices) choice.share /= total;
  std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return choices;
}

}  // namespace oomscope
