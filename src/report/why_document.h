// `why` as a document: the first fifteen lines answer, the rest shows the work.
#pragma once

#include <string>
#include <vector>

#include "analysis/why.h"
#include "report/document.h"
#include "types/finding.h"

namespace oomscope {

// The first finding's claim, or the diagnosis' sentence where there is none, and the balance: ready before any replay
// of other settings.
[[nodiscard]] std::vector<Section> diagnosis_sections(const Diagnosis& diagnosis, const std::vector<Finding>& findings,
                                                      Language language);
// Changes, proof, trust, next step, by line 15 at 80 columns; then the finding's details, all settings, bounds,
// verdicts and caveats. `path` names the file in commands.
[[nodiscard]] std::vector<Section> changes_sections(const Diagnosis& diagnosis, const Changes& changes,
                                                    const std::vector<Finding>& findings, const std::string& path,
                                                    Language language);
// Of these, what stands below the first screen.
[[nodiscard]] std::vector<Section> detail_sections(const Diagnosis& diagnosis, const Changes& changes,
                                                   const std::vector<Finding>& findings, const std::string& path,
                                                   Language language);
[[nodiscard]] Caveats all_caveats(const Diagnosis& diagnosis, const Changes& changes);
// What would have made it fit, or how much less would do. Where something grows from step to step, a setting that
// serves the request puts the failure off, and that is said.
[[nodiscard]] std::string outlook_text(const Changes& changes, const std::vector<Finding>& findings, Language language);
// Always English, whatever the language of the sections.
[[nodiscard]] nlohmann::ordered_json why_payload(const Diagnosis& diagnosis, const Changes& changes,
                                                 std::vector<Finding> findings, const std::string& path);

// Shared with `replay`: one run, one verdict.
[[nodiscard]] nlohmann::ordered_json run_json(const std::string& conf, std::optional<int64_t> cap_bytes,
                                              const OutcomeRange& range);
[[nodiscard]] nlohmann::ordered_json verdict_json(const Verdict& verdict);
// All runs of a sweep as a table, at most `most` rows.
[[nodiscard]] Table runs_table(const std::vector<SweepRun>& runs, size_t most, Language language = Language::english);
// A verdict's proof: a conf, or what its name stands for.
[[nodiscard]] std::string proof_name(const std::string& proof, Language language);
// "71,803 events replayed, 0 mismatches, rules of torch 2.11", and the same behind "proof: ". `rules`: those
// that replay it alike, where they were looked for.
[[nodiscard]] std::string proof_text(const Verification& verification, const std::vector<RuleSet>& rules = {},
                                     Language language = Language::english);
// "trust: high; whole file, history from the start, stacks for 100.0 %".
[[nodiscard]] std::string trust_line(const Diagnosis& diagnosis, Language language);
[[nodiscard]] std::string proof_line(const Verification& verification, const std::vector<RuleSet>& rules = {},
                                     Language language = Language::english);

}  // namespace oomscope
