// Short forms for RE2 over the bytes of a log.
#pragma once

#include <re2/re2.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace oomscope {

// Any bytes are text; a pattern that does not compile is a bug that the tests show.
[[nodiscard]] inline re2::RE2::Options bytes_options() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  return options;
}

// The head of a line, which may have megabytes.
[[nodiscard]] inline re2::StringPiece piece(std::string_view line) {
  constexpr size_t kLongestLine = 4000;
  return {line.data(), std::min(line.size(), kLongestLine)};
}

}  // namespace oomscope
