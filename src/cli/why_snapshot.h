// `why` for one snapshot: alone, or with what a log says of its card.
#pragma once

#include <string>

#include "analysis/text_facts.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"
#include "types/kind.h"
#include "types/snapshot.h"

namespace oomscope {

// Each adds the sections, sets the payload and gives the kind of the failure. `path` is for people, "-" where it was
// piped.
[[nodiscard]] Result<Kind> explain_snapshot(const std::string& path, const Snapshot& snapshot,
                                            const WhyArguments& arguments, Output& output);
[[nodiscard]] Result<Kind> explain_file(const std::string& path, const WhyArguments& arguments, Output& output);

// What the message says of the limit and the card holds for the recording of the same failure too; what the user says
// goes first. Figures of another card contradict the recording, and are left aside with a caveat.
[[nodiscard]] Result<Kind> explain_with_log(const std::string& path, const Snapshot& snapshot,
                                            const WhyArguments& arguments, TextFacts& facts, Output& output);

}  // namespace oomscope
