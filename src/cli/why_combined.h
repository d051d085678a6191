// `why` for logs together with snapshots: one verdict.
#pragma once

#include <string>

#include "analysis/text_facts.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/why_evidence.h"
#include "types/kind.h"
#include "types/snapshot.h"

namespace oomscope {

// Explains one snapshot with what the facts of the logs say of its card and limit.
using ExplainWithLog = Result<Kind> (*)(const std::string& path, const Snapshot& snapshot,
                                        const WhyArguments& arguments, TextFacts& facts, Output& output);

// `given` holds both. What the logs lack or contradict becomes caveats of `facts`.
[[nodiscard]] Result<Done> explain_combined(const GivenEvidence& given, const WhyArguments& arguments, TextFacts& facts,
                                            ExplainWithLog explain, Output& output);

}  // namespace oomscope
