// Would the changes have let the failed request through? Answered by replay where the recording allows it.
#include <algorithm>

#include "analysis/rules/ranking.h"
#include "analysis/trials.h"
#include "base/bytes_text.h"
#include "replay/what_if.h"

namespace oomscope {
namespace {

class Tester {
 public:
  Tester(const RunFacts& facts, int64_t budget)
      : facts_(facts), requests_(requests_of(*facts.diagnosis->verification)), budget_(budget) {
    if (!facts.failed()) return;
    // More was reserved than the limit allows: it was set behind that.
    const Peak& reserved = facts.diagnosis->verification->replay->peak_reserved();
    if (reserved.bytes > facts.diagnosis->capacity.low_bytes) limit_from_ = reserved.event + 1;
  }

  void test(const Finding& finding, Change& change) {
    const std::vector<Trial> trials = trials_of(facts_, finding, change.remedy);
    if (trials.empty()) return say_why_not(change, "not-tried");
    for (const Trial& trial : trials) {
      budget_ -= static_cast<int64_t>(requests_.kind.size());
      if (budget_ < 0) return say_why_not(change, "not-tried-for-time");
      if (replay(trial, change)) return;
    }
  }

 private:
  // True: settled, no stronger trial is wanted.
  bool replay(const Trial& trial, Change& change) {
    const ReplayConfig& config = facts_.diagnosis->verification->config;
    WhatIf question{.rules = config.rules, .settings = trial.settings.value_or(config.settings), .cap_bytes = {}};
    if (facts_.failed()) question.cap_bytes = facts_.diagnosis->capacity.low_bytes;
    question.cap_from_event = limit_from_;
    const OutcomeRange outcome = replay_range(with_edits(requests_, trial.edits), question);
    // Stopped before the change had any effect: the limit came later than that, and a replay from the start says
    // nothing.
    const bool too_early = !outcome.main.completed && outcome.main.stopped_at_event < first_effect(trial);
    if (too_early) {
      say_why_not(change, "not-tried-late-limit");
      return true;
    }
    if (!change.predicted) change.predicted = Predicted{};
    Predicted& predicted = *change.predicted;
    if (facts_.failed()) predicted.completed = outcome.main.completed;
    predicted.peak_reserved = outcome.main.peak_reserved;
    predicted.peak_reserved_low = outcome.peak_reserved_low;
    predicted.peak_reserved_high = outcome.peak_reserved_high;
    predicted.source =
        Phrase{.key = facts_.failed() ? "cause.predicted.replay" : "cause.predicted.replay-of-peak"}.with("what",
                                                                                                          {trial.what});
    return outcome.main.completed;
  }

  // The first event at which the trial changes anything.
  [[nodiscard]] uint32_t first_effect(const Trial& trial) const {
    if (trial.settings) return 0;
    uint32_t first = kNoEvent;
    for (const RequestEdit& edit : trial.edits.blocks) {
      const uint32_t begin = facts_.timeline().allocations[edit.allocation].begin;
      const uint32_t born = begin == kNoEvent ? 0 : begin;
      const bool resized = edit.size != RequestEdit::kSizeAsRecorded;
      first = std::min(first, resized ? born : std::max(born, edit.free_at));
    }
    if (trial.edits.last_failure_bytes) first = std::min(first, facts_.instant().event);
    return first;
  }

  static void say_why_not(Change& change, std::string_view key) {
    if (!change.predicted) change.predicted = Predicted{};
    const bool computed = change.predicted->saved_bytes.has_value();
    change.predicted->source = Phrase{.key = "cause.predicted." + std::string(key) + (computed ? "-computed" : "")};
  }

  const RunFacts& facts_;
  RequestStream requests_;
  int64_t budget_;
  uint32_t limit_from_ = 0;  // event
};

// Replayed, and not enough.
bool falls_short(const Change& change) {
  return change.predicted && change.predicted->completed.has_value() && !*change.predicted->completed;
}

}  // namespace

void try_changes(std::vector<Finding>& findings, const RunFacts& facts, int64_t budget) {
  if (findings.empty() || facts.trace().size_events() == 0) return;
  constexpr size_t kFindings = 3;
  Tester tester(facts, budget);
  for (size_t i = 0; i < std::min(kFindings, findings.size()); ++i) {
    std::vector<Change>& changes = findings[i].changes;
    const size_t tried = i == 0 ? changes.size() : std::min<size_t>(changes.size(), 1);
    for (size_t c = 0; c < tried; ++c) tester.test(findings[i], changes[c]);
    std::stable_partition(changes.begin(), changes.end(), [](const Change& change) { return !falls_short(change); });
  }
}

}  // namespace oomscope
