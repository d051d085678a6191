// Which finding is told first.
#pragma once

#include <vector>

#include "analysis/rules/rule.h"

namespace oomscope {

// All findings of a case, the actual cause before its symptoms.
[[nodiscard]] std::vector<Finding> find_findings(const CaseFacts& facts);

}  // namespace oomscope
