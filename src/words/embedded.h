// The files of en/ and zh/ as they are, put into the program by cmake/words.cmake.
#pragma once

#include <span>
#include <string_view>

#include "words/words.h"

namespace oomscope {

struct EmbeddedWords {
  Language language;
  std::string_view file;  // "causes.json"
  std::string_view json;
};
[[nodiscard]] std::span<const EmbeddedWords> embedded_words();

}  // namespace oomscope
