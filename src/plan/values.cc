// A recording does not say "batch 2": it shows that most sizes are twice those of another. That ratio decides which
// number in the files' names is meant (b1.pickle, b2.pickle; runs/batch-4/snapshot.pickle), and is all there is where
// no name tells: then the smallest whole numbers in that ratio stand for the values.
#include "plan/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace oomscope {
namespace {

constexpr int64_t kMostValue = int64_t{1} << 40;
constexpr int64_t kMostDenominator = 64;
constexpr double kRatioTolerance = 1e-3;  // growth is known to 1e-4

// A number of a path, and the word before it in lower case: "bs" of "bs-8", "batchsize" of "batch_size=8".
struct NamedNumber {
  int64_t number = 0;
  std::string word;
};

std::string word_before(std::string_view path, size_t end) {
  std::string word;
  for (size_t k = end; k > 0; --k) {
    const char c = path[k - 1];
    const bool joins = std::string_view("-_=").find(c) != std::string_view::npos;
    if (!is_letter(c) && (!joins || (!word.empty() && word != "size"))) break;
    if (is_letter(c)) word.insert(word.begin(), static_cast<char>(c | 0x20));
  }
  return word;
}

// In order.
std::vector<NamedNumber> numbers_in(std::string_view path) {
  std::vector<NamedNumber> numbers;
  for (size_t i = 0; i < path.size();) {
    if (path[i] < '0' || path[i] > '9') {
      ++i;
      continue;
    }
    NamedNumber found{.number = 0, .word = word_before(path, i)};
    const auto [end, error] = std::from_chars(path.data() + i, path.data() + path.size(), found.number);
    if (error != std::errc{}) found.number = -1;
    numbers.push_back(found);
    i = static_cast<size_t>(end - path.data());
  }
  return numbers;
}

bool is_among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool says_batch(std::string_view word) { return is_among(word, {"b", "bs", "batch", "batchsize"}); }
bool says_extent(std::string_view word) {
  return is_among(word, {"s", "seq", "l", "len", "length", "t", "side", "size", "img", "image", "res", "r", "px", "h"});
}

bool agrees(const std::vector<int64_t>& values, const std::vector<double>& growth, int power) {
  for (size_t k = 0; k < growth.size(); ++k) {
    if (values[k] <= 0 || values[k] >= values.back()) return false;
    const double ratio = std::pow(static_cast<double>(values.back()) / static_cast<double>(values[k]), power);
    if (std::abs(ratio - growth[k]) > kRatioTolerance * ratio) return false;
  }
  return true;
}

// The numbers of the paths by their place from the end: one list a place, one entry a path.
std::vector<std::vector<NamedNumber>> columns_of(const std::vector<std::string>& paths) {
  std::vector<std::vector<NamedNumber>> numbers;
  size_t count = SIZE_MAX;
  for (const std::string& path : paths) {
    numbers.push_back(numbers_in(path));
    count = std::min(count, numbers.back().size());
  }
  std::vector<std::vector<NamedNumber>> columns(count);
  for (size_t column = 0; column < count; ++column) {
    for (const std::vector<NamedNumber>& row : numbers) columns[column].push_back(row[row.size() - 1 - column]);
  }
  return columns;
}

// The last number of the paths that changes as the sizes do.
std::optional<FoundValues> values_in_names(const ValueQuestion& question) {
  for (const std::vector<NamedNumber>& column : columns_of(question.paths)) {
    FoundValues found{.values = {}, .are_batches = true, .source = ValueSource::names};
    for (const NamedNumber& entry : column) {
      found.values.push_back(entry.number);
      found.are_batches = found.are_batches && says_batch(entry.word);
    }
    if (agrees(found.values, question.growth, 1) || agrees(found.values, question.growth, 2)) return found;
  }
  return std::nullopt;
}

// Do the names say that batch and length, or side, change together, and the sizes that both do?
bool names_two_quantities(const ValueQuestion& question) {
  using Column = std::vector<NamedNumber>;
  const std::vector<Column> columns = columns_of(question.paths);
  const auto ratio = [](const Column& column, size_t k) {
    return static_cast<double>(column.back().number) / static_cast<double>(std::max<int64_t>(column[k].number, 1));
  };
  const auto grow_together = [&](const Column& batches, const Column& extents, int power) {
    for (size_t k = 0; k < question.growth.size(); ++k) {
      const double batch = ratio(batches, k);
      const double extent = ratio(extents, k);
      if (batch == 1 || extent == 1) return false;
      if (std::abs(batch * std::pow(extent, power) / question.growth[k] - 1) > kRatioTolerance) return false;
    }
    return true;
  };
  for (const Column& batches : columns) {
    for (const Column& extents : columns) {
      if (!says_batch(batches.front().word) || !says_extent(extents.front().word)) continue;
      if (grow_together(batches, extents, 1) || grow_together(batches, extents, 2)) return true;
    }
  }
  return false;
}

// Is each value named as a batch's in its path?
bool name_batches(const std::vector<std::string>& paths, const std::vector<int64_t>& values) {
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::vector<NamedNumber> numbers = numbers_in(paths[i]);
    const bool named = std::any_of(numbers.begin(), numbers.end(),
                                   [&](const NamedNumber& n) { return n.number == values[i] && says_batch(n.word); });
    if (!named) return false;
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
  if (names_two_quantities(question)) {
    return Error{.code = "values-unknown",
                 .what = "error.values-of-two",
                 .where = fmt::format("{}", fmt::join(question.paths, ", ")),
                 .hint = "error.recordings-differ.hint"};
  }
  if (const auto named = values_in_names(question)) return *named;
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
                   .hint = option == "--values" ? "error.values.hint" : std::string(option) + " 8",
                   .values = {{"text", std::string(text)}}};
    }
    values.push_back(value);
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace oomscope
