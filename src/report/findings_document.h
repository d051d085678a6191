// Findings as sections for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

// Of a recording, the first finding: what it is, when, which lines, what to change. The others: one line each.
[[nodiscard]] std::vector<Section> recording_finding_sections(const std::vector<Finding>& findings, Language language);
// Of a log, one finding: claim, reasons, popular advice that does not hold, then at most `most_changes` changes with
// the lines to paste.
[[nodiscard]] std::vector<Section> log_finding_sections(const Finding& finding, size_t most_changes, Language language);
// English, whatever the language of the sections.
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// "backward of the second step", "allocation".
[[nodiscard]] std::string instant_text(const FindingInstant& instant, Language language);

}  // namespace oomscope
