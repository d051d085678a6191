// `why` for other commands: the same answer, and what it was made from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/run_facts.h"
#include "analysis/why.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/ranks_document.h"
#include "types/finding.h"

namespace oomscope {

// One recording that was explained. References hold during the call alone.
struct ExplainedRecording {
  const std::string& path;
  const Diagnosis& diagnosis;
  const Changes& changes;
  const std::vector<Finding>& findings;
  size_t first_section = 0;  // of the output's document: what was said about it
  size_t end_section = 0;
};

// `report` draws what `why` explains.
struct ExplainListener {
  size_t curve_points = 0;  // of the replays under other settings
  // As soon as a recording has been read, from a thread of its own beside the replays.
  std::function<void(const Snapshot&, const Diagnosis&, const RunFacts&)> read;
  std::function<void(const ExplainedRecording&)> explained;  // after `read` of the same
  std::function<void(const RanksReport&)> compared;
};

// Adds the sections and sets the payload, as `why` does. The number is the exit code.
[[nodiscard]] Result<int> explain_evidence(const WhyArguments& arguments, Output& output);

}  // namespace oomscope
