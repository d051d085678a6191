#include "analysis/rules/ranking.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "remedies/causes.h"

namespace oomscope {
namespace {

// What the program did and need not have done, the most specific first; then what its memory is made of; then what is
// true of each failure. A graph that is kept also makes the job too large: capacity is its symptom.
constexpr std::array<std::string_view, 23> kOrder = {"exception-holds-tensors",
                                                     "graph-kept",
                                                     "checkpoint-on-gpu",
                                                     "copy-of-weights",
                                                     "second-model",
                                                     "attention-matrix",
                                                     "grad-in-evaluation",
                                                     "small-blocks-pin-segments",
                                                     "tensors-kept",
                                                     "pending-frees",
                                                     "private-pool",
                                                     "device-imbalance",
                                                     "optimizer-state",
                                                     "larger-batch",
                                                     "growing-sizes",
                                                     "logits",
                                                     "library-workspace",
                                                     "input-size",
                                                     "other-processes",
                                                     "first-allocation-or-context",
                                                     "fragmentation",
                                                     "capacity",
                                                     "none"};

// What another finding explains is no finding of its own: a kept graph is kept without a backward too, and attention
// over more tokens makes the first requests of a pass larger.
struct Symptom {
  std::string_view id;
  std::string_view cause;
};
constexpr std::array<Symptom, 2> kSymptoms = {
    {{"grad-in-evaluation", "graph-kept"}, {"larger-batch", "attention-matrix"}}};

bool is_explained(const Finding& finding, const std::vector<Finding>& findings) {
  return std::any_of(kSymptoms.begin(), kSymptoms.end(), [&](const Symptom& symptom) {
    return symptom.id == finding.id && std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
             return other.id == symptom.cause && other.confidence != Confidence::low;
           });
  });
}

size_t rank_of(std::string_view id) {
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), id) - kOrder.begin());
}

// What is hardly sure is told behind what is true of each failure.
size_t order_of(const Finding& finding) {
  const bool unsure = finding.confidence == Confidence::low && !is_plain_cause(finding.id);
  return rank_of(finding.id) + (unsure ? kOrder.size() : 0);
}

}  // namespace

std::vector<Finding> find_findings(const CaseFacts& facts) {
  std::vector<Finding> findings;
  for (const Cause& cause : causes()) {
    std::vector<Finding> found = cause.find(facts);
    std::move(found.begin(), found.end(), std::back_inserter(findings));
  }
  // Nothing explains a failure by holding nothing.
  std::erase_if(findings, [](const Finding& finding) { return finding.instant.failed && finding.bytes == 0; });
  const std::vector<Finding> all = findings;
  std::erase_if(findings, [&](const Finding& finding) { return is_explained(finding, all); });
  for (Finding& finding : findings) {
    const CauseGuide* guide = find_cause_guide(finding.id);
    // Of a log, the rule knows which of them its figures contradict.
    if (facts.run != nullptr && guide != nullptr) finding.claims.assign(guide->claims.begin(), guide->claims.end());
  }
  // A recording shows causes and their symptoms; a log shows one failure, and how sure its readings are.
  std::stable_sort(findings.begin(), findings.end(), [&](const Finding& a, const Finding& b) {
    return facts.run == nullptr ? a.confidence < b.confidence : order_of(a) < order_of(b);
  });
  // Nothing failed, and something is worth saying: then "none" is not true.
  if (findings.size() > 1) std::erase_if(findings, [](const Finding& finding) { return finding.id == "none"; });
  return findings;
}

}  // namespace oomscope
