// Which finding is told first.
#pragma once

#include <vector>

#include "analysis/rules/rule.h"
#include "analysis/why.h"

namespace oomscope {

// All findings of a case, the actual cause before its symptoms.
[[nodiscard]] std::vector<Finding> find_findings(const CaseFacts& facts);

// Replays the recording with what the changes would have made of its requests (analysis/trials.h), under the limit of
// the failure, and writes into each change what came of it, or why nothing could be replayed. Of the first finding all
// changes are tried, of the next ones the first; changes that a replay shows not to be enough go behind the others.
// Without a failure the peak is what is found. Stops at `budget` requests replayed.
inline constexpr int64_t kTrialBudget = 8'000'000;
void try_changes(std::vector<Finding>& findings, const RunFacts& facts, int64_t budget = kTrialBudget);

}  // namespace oomscope
