// A recording does not say "batch 2": it shows that most sizes are twice those of another. That ratio decides which
// number in the files' names is meant (b1.pickle, b2.pickle; runs/batch-4/snapshot.pickle), and is all there is where
// no name tells: then the smallest whole numbers in that ratio stand for the values.
#include "plan/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace oomscope {
namespace {

constexpr int64_t kMostValue = int64_t{1} << 40;
constexpr int64_t kMostDenominator = 64;
constexpr double kRatioTolerance = 1e-3;  // growth is known to 1e-4

// The numbers of a path, in order.
std::vector<int64_t> numbers_in(std::string_view path) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < path.size();) {
    if (path[i] < '0' || path[i] > '9') {
      ++i;
      continue;
    }
    int64_t number = 0;
    const auto [end, error] = std::from_chars(path.data() + i, path.data() + path.size(), number);
    numbers.push_back(error == std::errc{} ? number : -1);
    i = static_cast<size_t>(end - path.data());
  }
  return numbers;
}

bool agrees(const std::vector<int64_t>& values, const std::vector<double>& growth, int power) {
  for (size_t k = 0; k < growth.size(); ++k) {
    if (values[k] <= 0 || values[k] >= values.back()) return false;
    const double ratio = std::pow(static_cast<double>(values.back()) / static_cast<double>(values[k]), power);
    if (std::abs(ratio - growth[k]) > kRatioTolerance * ratio) return false;
  }
  return true;
}

// The last number of the paths that changes as the sizes do.
std::optional<std::vector<int64_t>> values_in_names(const ValueQuestion& question) {
  std::vector<std::vector<int64_t>> numbers;
  size_t count = SIZE_MAX;
  for (const std::string& path : question.paths) {
    numbers.push_back(numbers_in(path));
    count = std::min(count, numbers.back().size());
  }
  for (size_t column = 0; column < count; ++column) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& row : numbers) values.push_back(row[row.size() - 1 - column]);
    if (agrees(values, question.growth, 1) || agrees(values, question.growth, 2)) return values;
  }
  return std::nullopt;
}

// Does each path name its value as a batch's: "b8", "bs-8", "batch_size=8"?
bool name_batches(const std::vector<std::string>& paths, const std::vector<int64_t>& values) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto names_batch = [&](const std::string& path, int64_t value) {
    const std::string number = std::to_string(value);
    for (size_t at = path.find(number); at != std::string::npos; at = path.find(number, at + 1)) {
      const size_t end = at + number.size();
      const bool is_whole = (end == path.size() || path[end] < '0' || path[end] > '9');
      size_t begin = at;
      while (begin > 0 &&
             (is_letter(path[begin - 1]) || std::string_view("-_= ").find(path[begin - 1]) != std::string_view::npos)) {
        --begin;
      }
      std::string word = path.substr(begin, at - begin);
      word.erase(std::remove_if(word.begin(), word.end(), [&](char c) { return !is_letter(c); }), word.end());
      std::transform(word.begin(), word.end(), word.begin(), [](char c) { return static_cast<char>(c | 0x20); });
      for (std::string_view known : {"b", "bs", "batch", "batchsize"}) {
        const bool ends = word.size() >= known.size() && word.ends_with(known) && (known.size() > 2 || word == known);
        if (is_whole && ends) return true;
      }
    }
    return false;
  };
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!names_batch(paths[i], values[i])) return false;
  }
  return true;
}

// The smallest whole numbers in the ratios of the sizes.
std::optional<std::vector<int64_t>> values_in_ratio(const std::vector<double>& growth) {
  for (int64_t last = 2; last <= kMostDenominator * kMostDenominator; ++last) {
    std::vector<int64_t> values;
    for (double ratio : growth) values.push_back(std::llround(static_cast<double>(last) / ratio));
    values.push_back(last);
    if (agrees(values, growth, 1) && std::is_sorted(values.begin(), values.end())) return values;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(ValueSource source) {
  switch (source) {
    case ValueSource::given: return "given";
    case ValueSource::names: return "names";
    case ValueSource::ratios: return "ratios";
    case ValueSource::single: return "single";
  }
  return "single";
}

Result<FoundValues> find_values(const ValueQuestion& question) {
  if (question.given) {
    const std::vector<int64_t>& values = *question.given;
    if (std::adjacent_find(values.begin(), values.end()) != values.end()) {
      return Error{.code = "values-wrong",
                   .what = "error.values-alike",
                   .where = "--values",
                   .hint = "oomscope fit --help",
                   .values = {{"value", std::to_string(*std::adjacent_find(values.begin(), values.end()))}}};
    }
    return FoundValues{
        .values = values, .are_batches = name_batches(question.paths, values), .source = ValueSource::given};
  }
  if (question.growth.empty()) return FoundValues{.values = {1}, .source = ValueSource::single};
  if (const auto named = values_in_names(question)) {
    return FoundValues{
        .values = *named, .are_batches = name_batches(question.paths, *named), .source = ValueSource::names};
  }
  if (const auto whole = values_in_ratio(question.growth))
    return FoundValues{.values = *whole, .source = ValueSource::ratios};
  const bool same = std::all_of(question.growth.begin(), question.growth.end(), [](double g) { return g == 1; });
  return Error{.code = "values-unknown",
               .what = same ? "error.values-of-one-size" : "error.values-unknown",
               .where = fmt::format("{}", fmt::join(question.paths, ", ")),
               .hint = "error.values-unknown.hint"};
}

Result<std::vector<int64_t>> parse_values(std::string_view option, std::string_view text) {
  std::vector<int64_t> values;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value <= 0 || value > kMostValue) {
      return Error{.code = "bad-usage",
                   .what = "error.no-values",
                   .where = std::string(option),
                   .hint = option == "--values" ? "error.values.hint" : "--at 32",
                   .values = {{"text", std::string(text)}}};
    }
    values.push_back(value);
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace oomscope
