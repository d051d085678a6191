// What a run prints that goes on: steps, bars, a word that it is done. Behind a message of memory such lines tell that
// nothing ended there.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "evidence/text/squeeze.h"
#include "types/text_evidence.h"

namespace oomscope {

// Of the lines of `rank` (none: of those that name no rank), in order, with offsets in the text that was cleaned.
constexpr size_t kMostSigns = 24;  // the first and the last half of them
[[nodiscard]] std::vector<RunSign> run_signs(std::span<const CleanLine> lines, std::optional<int> rank);

// Whether standard output may have been held back behind the traceback that ends `lines`: Python hands it over in
// blocks of 8 KiB where it is no terminal, and the rest when the process ends, behind the traceback. Then no sign
// stands before the traceback, or it begins within a line.
[[nodiscard]] bool may_be_overtaken(std::span<const CleanLine> lines);

// Whether a launcher says at the end of the text that its process failed.
[[nodiscard]] bool ends_by_launcher(std::span<const CleanLine> lines);

// How the program says that it takes the failure: it tries again, skips, reduces the batch; or it leaves one of several
// choices out.
[[nodiscard]] Handling handling_of(std::span<const CleanLine> lines, std::optional<int> rank);

}  // namespace oomscope
