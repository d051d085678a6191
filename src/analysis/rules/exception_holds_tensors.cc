// exception-holds-tensors: a request failed, the program went on and tried again, and what the failed pass had made is
// still live: a kept exception, or the notebook's last traceback, holds the frames and their tensors.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_exception_holds_tensors(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  int64_t held = 0;
  int64_t tries = 0;
  for (const SurvivedFailure& failure : run.survived) {
    held += failure.held_bytes;
    tries += failure.held_bytes > 0 ? 1 : 0;
  }
  if (!matters(run, held)) return {};
  const auto largest =
      std::max_element(run.survived.begin(), run.survived.end(),
                       [](const SurvivedFailure& a, const SurvivedFailure& b) { return a.held_bytes < b.held_bytes; });
  Finding finding = finding_of(run, "exception-holds-tensors");
  finding.bytes = held;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(held))
                      .with("event", format_count(largest->event))
                      .with("site", call_site(run, run.trace().stack[largest->event]));
  finding.confidence = Confidence::high;
  finding.because = because("failed-pass-still-live");
  add_evidence(finding,
               Phrase{.key = "cause.evidence.survived-failure"}
                   .with("event", format_count(largest->event))
                   .with("bytes", format_bytes(largest->held_bytes))
                   .with("tries", format_count(tries)),
               largest->event, largest->held_bytes, call_site(run, run.trace().stack[largest->event]));
  add_changes(finding, run, held);
  for (const SurvivedFailure& failure : run.survived) {
    for (uint32_t id : run.left_by(failure)) {
      finding.edits.push_back(RequestEdit{.allocation = id, .free_at = failure.event + 1});
    }
  }
  return {finding};
}

}  // namespace oomscope
