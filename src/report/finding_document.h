// A finding as sections and as JSON, whatever evidence it comes from.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "report/document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

// Claim, reasons, then at most `most_changes` changes with the lines to paste.
[[nodiscard]] std::vector<Section> finding_sections(const Finding& finding, size_t most_changes, Language language);
[[nodiscard]] nlohmann::ordered_json finding_json(const Finding& finding);

}  // namespace oomscope
