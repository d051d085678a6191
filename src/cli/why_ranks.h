// `why` for the ranks of one job: each looked at alone, compared, and the one that matters explained as `why` does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"
#include "evidence/rank_files.h"
#include "types/kind.h"

namespace oomscope {

// Explains one device of one snapshot: adds the sections, sets the payload, gives the kind of its failure.
using ExplainOne = std::function<Result<Kind>(const std::string& path, const WhyArguments& arguments, Output& output)>;

// What snapshots come to. `rank` is the one that failed first, where the names tell ranks.
struct SnapshotVerdict {
  std::optional<Kind> kind = {};
  std::optional<int64_t> rank = {};
};

// Ranks that cannot be read are told and left out; with none left the error of the first. `none_failed` is called
// before anything is said, where that is so: then what else is known may be the answer.
[[nodiscard]] Result<SnapshotVerdict> explain_ranks(const RankFiles& files, const WhyArguments& arguments,
                                                    const ExplainOne& explain, Output& output,
                                                    const std::function<void()>& none_failed = {});

}  // namespace oomscope
