// Logs of a few lines and what `why` makes of them, for the tests of text verdicts.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/rules/ranking.h"
#include "analysis/rules/rule.h"
#include "analysis/text_facts.h"
#include "evidence/text/text_reader.h"

namespace oomscope {

struct Case {
  std::vector<TextEvidence> logs;
  TextFacts facts;
};

// Facts point into the logs, so both live together.
inline std::unique_ptr<Case> facts_of(std::vector<std::string> texts) {
  auto out = std::make_unique<Case>();
  for (size_t i = 0; i < texts.size(); ++i)
    out->logs.push_back(read_text(texts[i], "rank" + std::to_string(i) + ".log"));
  out->facts = find_text_facts(out->logs);
  return out;
}

inline Kind kind_of(std::string text) { return facts_of({std::move(text)})->facts.kind; }

inline std::string oom(std::string tried, std::string total, std::string allocated, std::string free,
                       std::string reserved) {
  return "RuntimeError: CUDA out of memory. Tried to allocate " + tried + " (GPU 0; " + total + " total capacity; " +
         allocated + " already allocated; " + free + " free; " + reserved + " reserved in total by PyTorch)\n";
}

// One rank's message on its local card 0, with what others hold there.
inline std::string shared(int gpu, std::string own, std::string free) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU " + std::to_string(gpu) +
         " has a total capacity of 40.00 GiB of which " + free +
         " is free. Including non-PyTorch memory, this process has " + own +
         " memory in use. Of the allocated memory " + own +
         " is allocated by PyTorch, and 1.00 MiB is reserved by "
         "PyTorch but unallocated.\n";
}

// Logs of named ranks, as a folder gives them.
inline std::vector<Finding> findings_of(const std::vector<std::pair<std::string, std::string>>& logs) {
  std::vector<TextEvidence> read;
  for (const auto& [name, text] : logs) read.push_back(read_text(text, name));
  const TextFacts facts = find_text_facts(read);
  return find_findings({.run = nullptr, .text = &facts});
}

inline bool says_shared(const std::vector<std::pair<std::string, std::string>>& logs) {
  const std::vector<Finding> findings = findings_of(logs);
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.id == "ranks-share-card"; });
}

// The key of what is said first.
inline std::string claim_of(const std::string& text) {
  const std::vector<Finding> findings = findings_of({{"a.log", text}});
  return findings.empty() ? "" : findings.front().claim.key;
}

// A frame as a traceback prints it.
inline std::string frame(std::string file, std::string function, std::string code) {
  return "  File \"" + file + "\", line 1, in " + function + "\n    " + code + "\n";
}

// Of each rule by itself, unranked.
inline std::vector<Finding> each_finding_of(const Case& found) {
  std::vector<Finding> all;
  for (const Cause& cause : causes()) {
    for (Finding& finding : cause.find({.run = nullptr, .text = &found.facts})) all.push_back(std::move(finding));
  }
  return all;
}

inline bool proposes(const Finding& finding, std::string_view remedy) {
  return std::any_of(finding.changes.begin(), finding.changes.end(),
                     [&](const Change& change) { return change.remedy == remedy; });
}

}  // namespace oomscope
