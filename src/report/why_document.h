// `why` as a document: the first fifteen lines answer, the rest shows the work.
#pragma once

#include <string>
#include <vector>

#include "analysis/why.h"
#include "report/document.h"
#include "types/finding.h"

namespace oomscope {

// Sentence and balance, behind the findings: ready before any replay of other settings. Where the first finding has
// said the sentence, it is not said again.
[[nodiscard]] std::vector<Section> diagnosis_sections(const Diagnosis& diagnosis, const std::vector<Finding>& findings,
                                                      Language language);
// Changes, proof, trust, next step, then all settings, bounds, verdicts and caveats. `path` names the file in commands.
[[nodiscard]] std::vector<Section> changes_sections(const Diagnosis& diagnosis, const Changes& changes,
                                                    const std::string& path, Language language);
// Always English, whatever the language of the sections.
[[nodiscard]] nlohmann::ordered_json why_payload(const Diagnosis& diagnosis, const Changes& changes,
                                                 std::vector<Finding> findings, const std::string& path);

// Shared with `replay`: one run, one verdict.
[[nodiscard]] nlohmann::ordered_json run_json(const std::string& conf, std::optional<int64_t> cap_bytes,
                                              const OutcomeRange& range);
[[nodiscard]] nlohmann::ordered_json verdict_json(const Verdict& verdict);
// All runs of a sweep as a table, at most `most` rows.
[[nodiscard]] Table runs_table(const std::vector<SweepRun>& runs, size_t most, std::optional<int64_t> cap_bytes,
                               Language language = Language::english);
// "71,803 events replayed, 0 mismatches, rules of torch 2.10 and 2.11", and the same behind "proof: ".
[[nodiscard]] std::string proof_text(const Verification& verification, Language language = Language::english);
[[nodiscard]] std::string proof_line(const Verification& verification, Language language = Language::english);

}  // namespace oomscope
