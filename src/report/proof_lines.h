// What would show a log's failure beyond doubt next time, in lines to paste.
#pragma once

#include <string>
#include <vector>

#include "analysis/text_facts.h"
#include "words/words.h"

namespace oomscope {

// Mostly two. Empty where nothing that can be typed shows more.
[[nodiscard]] std::vector<std::string> proof_lines(const TextFacts& facts, Language language);

}  // namespace oomscope
