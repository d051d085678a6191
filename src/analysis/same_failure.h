// Whether a log and a recording tell of one failure, by the figures that both print.
#pragma once

#include "analysis/text_facts.h"
#include "types/snapshot.h"

namespace oomscope {

// False where messages of the logs print a request, and none of them is a request that failed in the recording with as
// much free on the card. Without figures nothing speaks against it.
[[nodiscard]] bool may_be_same_failure(const TextFacts& facts, const Snapshot& snapshot);

}  // namespace oomscope
