// `why` for the ranks of one job: each looked at alone, compared, and the one that matters explained as `why` does.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"
#include "evidence/rank_files.h"

namespace oomscope {

// Explains one device of one snapshot: adds the sections, and sets the payload.
using ExplainOne = Result<Done> (*)(const std::string& path, const WhyArguments& arguments, Output& output);

// Ranks that cannot be read are told and left out; with none left the error of the first.
[[nodiscard]] Result<Done> explain_ranks(const RankFiles& files, const WhyArguments& arguments, ExplainOne explain,
                                         Output& output);

}  // namespace oomscope
