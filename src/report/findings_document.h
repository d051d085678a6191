// Findings as sections for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

// Of a recording, what the first screen has no room for: when it happened, how sure, which lines, the other findings
// (one line each), and what to do with the lines to paste.
[[nodiscard]] std::vector<Section> finding_details(const std::vector<Finding>& findings, Language language);
// Its first change in one line; empty where which setting helps is known after the replays only.
[[nodiscard]] std::string change_line(const Finding& finding, Language language);
// " (replayed: completes, 6,465 MiB reserved)", or nothing where no number is known.
[[nodiscard]] std::string effect_text(const Predicted& predicted, Language language);
// Of a log, one finding: claim, reasons, popular advice that does not hold, then at most `most_changes` changes with
// the lines to paste.
[[nodiscard]] std::vector<Section> log_finding_sections(const Finding& finding, size_t most_changes, Language language);
// English, whatever the language of the sections.
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// "backward of the second step", "allocation".
[[nodiscard]] std::string instant_text(const FindingInstant& instant, Language language);

}  // namespace oomscope
