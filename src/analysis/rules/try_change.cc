// Would the first change have let the failed request through? Answered by replay, not by arithmetic.
#include <algorithm>

#include "analysis/rules/ranking.h"
#include "base/bytes_text.h"
#include "replay/what_if.h"

namespace oomscope {
namespace {

// The first event whose block the change would free or not ask for.
uint32_t first_effect(const Verification& verification, const Finding& finding) {
  uint32_t first = kNoEvent;
  for (const EarlierFree& free : finding.frees) {
    const uint32_t begin = verification.timeline.allocations[free.allocation].begin;
    first = std::min(first, std::max(begin == kNoEvent ? 0 : begin, free.event));
  }
  return first;
}

}  // namespace

void try_first_change(std::vector<Finding>& findings, const Diagnosis& diagnosis) {
  if (findings.empty() || !diagnosis.instant.failed) return;
  Finding& finding = findings.front();
  if ((finding.frees.empty() && !finding.drops_request) || finding.changes.empty()) return;
  const Verification& verification = *diagnosis.verification;
  const RequestStream changed = with_earlier_frees(requests_of(verification), finding.frees, finding.drops_request);
  const OutcomeRange outcome = replay_range(changed, WhatIf{.rules = verification.config.rules,
                                                            .settings = verification.config.settings,
                                                            .cap_bytes = diagnosis.capacity.low_bytes});
  // Stopped before the change had any effect: the limit came later than that, and a replay from the start says nothing.
  if (!outcome.main.completed && outcome.main.stopped_at_event < first_effect(verification, finding)) return;
  Change& change = finding.changes.front();
  if (!change.predicted) change.predicted = Predicted{};
  Predicted& predicted = *change.predicted;
  predicted.completed = outcome.main.completed;
  predicted.peak_reserved = outcome.main.peak_reserved;
  predicted.peak_reserved_low = outcome.peak_reserved_low;
  predicted.peak_reserved_high = outcome.peak_reserved_high;
  predicted.source =
      Phrase{.key = "cause.predicted.replay"}.with("blocks", format_count(static_cast<int64_t>(finding.frees.size())));
}

}  // namespace oomscope
