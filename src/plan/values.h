// At which value of the varied quantity each recording was made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oomscope {

enum class ValueSource : uint8_t {
  given,   // --values
  names,   // the numbers in which the paths differ, confirmed by the ratio of the sizes
  ratios,  // the sizes alone: the smallest whole numbers in their ratio
  single,  // one recording: nothing is varied
};
[[nodiscard]] std::string_view name_of(ValueSource source);

// One recording after the other, the smallest first.
struct ValueQuestion {
  std::vector<std::string> paths;
  std::vector<double> growth;  // by recording but the last: what most sizes of the last are a multiple of
  std::optional<std::vector<int64_t>> given;
};

struct FoundValues {
  std::vector<int64_t> values;  // ascending
  bool are_batches = false;     // the paths say so: "b8", "batch-8", "bs8"
  ValueSource source = ValueSource::given;
};

// Errors: values-wrong (not positive, not distinct), values-unknown.
[[nodiscard]] Result<FoundValues> find_values(const ValueQuestion& question);

// "1,2,4" as `option` takes it. Error: bad-usage.
[[nodiscard]] Result<std::vector<int64_t>> parse_values(std::string_view option, std::string_view text);

}  // namespace oomscope
