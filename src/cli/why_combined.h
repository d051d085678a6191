// `why` for logs together with snapshots: one verdict.
#pragma once

#include "analysis/text_facts.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/why_evidence.h"

namespace oomscope {

// `given` holds both. What the logs lack or contradict becomes caveats of `facts`.
[[nodiscard]] Result<Done> explain_combined(const GivenEvidence& given, const WhyArguments& arguments, TextFacts& facts,
                                            Output& output);

}  // namespace oomscope
