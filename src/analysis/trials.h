// Trials: what a remedy would have made of a recording's requests, to be replayed.
//
// A remedy can be tried where the recording shows all that it acts on: blocks that it drops, frees earlier or makes
// smaller. Where a changed program would ask for something else instead (blocks of a sharded job, what checkpointing
// computes again), there is no trial, and arithmetic is all there is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/run_facts.h"
#include "replay/what_if.h"
#include "types/finding.h"

namespace oomscope {

struct Trial {
  RequestEdits edits;
  std::optional<AllocatorSettings> settings;  // empty: as recorded
  Phrase what;                                // "activations and inputs at 1/4"
};

// Milder ones first; what the first that completes shows is what the remedy brings. Empty: not to be tried.
[[nodiscard]] std::vector<Trial> trials_of(const RunFacts& facts, const Finding& finding, std::string_view remedy);

}  // namespace oomscope
