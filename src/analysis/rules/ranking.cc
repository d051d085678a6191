#include "analysis/rules/ranking.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/run_facts.h"
#include "remedies/causes.h"

namespace oomscope {
namespace {

// What another finding explains is no finding of its own: a kept graph is kept without a backward too.
struct Symptom {
  std::string_view id;
  std::string_view cause;
};
constexpr std::array kSymptoms = {Symptom{"grad-in-evaluation", "graph-kept"}};

bool is_explained(const Finding& finding, const std::vector<Finding>& findings) {
  return std::any_of(kSymptoms.begin(), kSymptoms.end(), [&](const Symptom& symptom) {
    return symptom.id == finding.id && std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
             return other.id == symptom.cause && other.confidence != Confidence::low;
           });
  });
}

// What is hardly sure is told behind what is true of each failure.
bool is_unsure(const Finding& finding) { return finding.confidence == Confidence::low && !is_plain_cause(finding.id); }

// Of a log: what the program likely did and need not have done, which other findings are symptoms of.
bool is_likely_origin(const Finding& finding) {
  const bool is_origin =
      finding.id == "exception-holds-tensors" || finding.id == "second-model" || finding.id == "memory-grows";
  return is_origin && finding.confidence != Confidence::low;
}

bool is_told_before(const Finding& a, const Finding& b) {
  if (is_likely_origin(a) != is_likely_origin(b)) return is_likely_origin(a);
  return a.confidence < b.confidence;
}

}  // namespace

std::vector<Finding> find_findings(const CaseFacts& facts) {
  std::vector<Finding> findings;
  for (const Cause& cause : causes()) {
    for (Finding& finding : cause.find(facts)) {
      finding.id = cause.id;
      findings.push_back(std::move(finding));
    }
  }
  // Of a recording, nothing explains a failure by holding nothing; a log may print "0GB" for what it tried.
  if (facts.run != nullptr)
    std::erase_if(findings, [](const Finding& finding) { return finding.instant.failed && finding.bytes == 0; });
  const std::vector<Finding> all = findings;
  std::erase_if(findings, [&](const Finding& finding) { return is_explained(finding, all); });
  for (Finding& finding : findings) {
    const CauseGuide* guide = find_cause_guide(finding.id);
    // Of a log, the rule knows which of them its figures contradict.
    if (facts.run != nullptr && guide != nullptr) finding.claims.assign(guide->claims.begin(), guide->claims.end());
  }
  // What the replay makes wrong, the rules read wrong.
  const bool is_inexact = facts.run != nullptr && !facts.run->diagnosis->verification->exact();
  for (Finding& finding : findings) {
    if (is_inexact && finding.confidence == Confidence::high) finding.confidence = Confidence::medium;
  }
  // A recording shows causes and their symptoms, in the table's order; a log shows one failure, and how sure its
  // readings are.
  std::stable_sort(findings.begin(), findings.end(), [&](const Finding& a, const Finding& b) {
    return facts.run == nullptr ? is_told_before(a, b) : is_unsure(a) < is_unsure(b);
  });
  // Nothing failed, and something is worth saying: then "none" is not true.
  if (findings.size() > 1) std::erase_if(findings, [](const Finding& finding) { return finding.id == "none"; });
  return findings;
}

}  // namespace oomscope
