// `diff` as a document: circumstances first, then totals, then lines of code.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/diff.h"
#include "report/chart.h"
#include "report/document.h"
#include "words/words.h"

namespace oomscope {

// `top` rows before the rest is one; lines that did not change, and what has no frames, are rows of their own.
[[nodiscard]] Document diff_document(const Diff& diff, const std::string& path_a, const std::string& path_b,
                                     int64_t top, Language language);

// The lines whose bytes differ most, most first, at most a dozen.
[[nodiscard]] std::vector<SignedPart> largest_differences(const Diff& diff, Language language);

}  // namespace oomscope
