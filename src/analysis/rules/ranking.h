// Which finding is told first.
#pragma once

#include <vector>

#include "analysis/rules/rule.h"
#include "analysis/why.h"

namespace oomscope {

// All findings of a case, the actual cause before its symptoms.
[[nodiscard]] std::vector<Finding> find_findings(const CaseFacts& facts);

// Replays the recording with what the first finding's first change would have freed, under the limit of the failure and
// the recorded settings, and writes into the change what came of it. Does nothing where nothing failed.
void try_first_change(std::vector<Finding>& findings, const Diagnosis& diagnosis);

}  // namespace oomscope
