// Trials: what a remedy would have made of a recording's requests, to be replayed.
//
// A remedy that is a measure of `fit` is tried by the measure's own transform; another where the recording shows all
// that it acts on: blocks that it drops, frees earlier or makes smaller.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/run_facts.h"
#include "plan/job.h"
#include "replay/what_if.h"
#include "types/finding.h"

namespace oomscope {

struct Trial {
  RequestEdits edits;
  std::function<Result<Job>(const Job&)> transform;  // in place of edits; empty: none. It may not apply
  std::optional<AllocatorSettings> settings;         // empty: as recorded
  Phrase what;                                       // "activations and inputs at 1/4"
  Phrase premise = {};                               // of Predicted
};

// Milder ones first; what the first that completes shows is what the remedy brings. Empty: not to be tried.
[[nodiscard]] std::vector<Trial> trials_of(const RunFacts& facts, const Finding& finding, std::string_view remedy);

}  // namespace oomscope
