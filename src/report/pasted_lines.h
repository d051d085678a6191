// Lines to paste as people read them: the code as it is, its comments in their language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "words/words.h"

namespace oomscope {

// What stands behind "# " is a key, "comment.TEXT"; JSON has the snippet itself.
[[nodiscard]] std::vector<std::string> pasted_lines(std::string_view snippet, Language language);

}  // namespace oomscope
