// The texts of en/ and zh/, put into the program by cmake/words.cmake.
#pragma once

#include <span>
#include <string_view>

#include "words/words.h"

namespace oomscope {

struct WordEntry {
  std::string_view key;
  std::string_view text;
};
// Ascending by key.
[[nodiscard]] std::span<const WordEntry> embedded_words(Language language);

}  // namespace oomscope
