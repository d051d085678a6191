// What modules keep for backward, below the answer of `why`.
#pragma once

#include <vector>

#include "evidence/modules_beside.h"
#include "report/document.h"
#include "words/words.h"

namespace oomscope {

// The largest few; the others are one entry, with their sum.
[[nodiscard]] Section modules_section(const std::vector<ModuleUse>& modules, Language language);
[[nodiscard]] nlohmann::ordered_json modules_json(const std::vector<ModuleUse>& modules);

}  // namespace oomscope
