// Findings as sections for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

// The first finding: what it is, when, which lines, what to change. The others: one line each.
[[nodiscard]] std::vector<Section> finding_sections(const std::vector<Finding>& findings, Language language);
// English, whatever the language of the sections.
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// "backward of the second step", "allocation".
[[nodiscard]] std::string instant_text(const FindingInstant& instant, Language language);

}  // namespace oomscope
