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
    if (facts.failed()) limit_from_ = limit_begins(*facts.diagnosis);
  }

  void test(const Finding& finding, Change& change) {
    const std::vector<Trial> trials = trials_of(facts_, finding, change.remedy);
    if (trials.empty()) return say_why_not(change, "not-tried");
    if (facts_.failed() && !failure_is_reproduced()) return say_why_not(change, "unproven-start");
    std::optional<Answer> best;
    for (const Trial& trial : trials) {
      if (budget_ <= 0) break;
      const std::optional<RequestStream> changed = changed_by(trial);
      if (!changed || first_effect(trial, *changed) == kNoEvent) continue;  // nothing of it is in the recording
      const Answer answer = replay(trial, *changed);
      if (!best || answer.result < best->result) best = answer;
      if (best->result == Ending::completes) break;
    }
    if (!best) return say_why_not(change, budget_ <= 0 ? "not-tried-for-time" : "not-tried");
    if (best->result == Ending::too_early) return say_why_not(change, "not-tried-late-limit");
    write(*best, change);
  }

  // What the recording itself comes to, replayed the same way.
  int64_t reserved_as_recorded() {
    if (!reserved_as_recorded_) {
      const ReplayConfig& config = facts_.diagnosis->verification->config;
      budget_ -= static_cast<int64_t>(requests_.kind.size());
      reserved_as_recorded_ =
          replay_what_if(requests_, {.rules = config.rules, .settings = config.settings, .cap_bytes = recorded_cap()})
              .peak_reserved;
    }
    return *reserved_as_recorded_;
  }

 private:
  enum class Ending : uint8_t {
    completes,
    open,  // within the range in which the limit is
    fails,
    too_early,  // stopped before the change had any effect: the limit came later, and the replay says nothing
  };
  struct Answer {
    Ending result = Ending::fails;
    OutcomeRange outcome;
    const Trial* trial = nullptr;  // lives while one change is tried
  };

  // Of a recording that completed, where its replay has found one.
  [[nodiscard]] std::optional<int64_t> recorded_cap() const {
    return facts_.diagnosis->verification->config.limit_bytes;
  }

  // A cap that came late is one that the allocator tests.
  [[nodiscard]] CapKind cap_kind() const {
    const bool is_card = facts_.failed() && !facts_.diagnosis->capacity.is_limit && limit_from_ == 0;
    return is_card ? CapKind::card : CapKind::limit;
  }

  bool failure_is_reproduced() {
    if (!is_reproduced_) {
      const ReplayConfig& config = facts_.diagnosis->verification->config;
      is_reproduced_ =
          !requests_.from_mid_life ||
          fails_as_recorded(requests_, replay_what_if(requests_, {.rules = config.rules,
                                                                  .settings = config.settings,
                                                                  .cap_bytes = facts_.diagnosis->capacity.low_bytes,
                                                                  .cap_kind = cap_kind(),
                                                                  .cap_from_event = limit_from_}));
    }
    return *is_reproduced_;
  }

  // Empty: the transform does not apply.
  std::optional<RequestStream> changed_by(const Trial& trial) {
    if (!trial.transform) return with_edits(requests_, trial.edits);
    if (!job_) job_ = make_job(*facts_.diagnosis->verification, facts_.structure, requests_);
    Result<Job> job = trial.transform(*job_);
    return job ? std::optional(std::move(job->requests)) : std::nullopt;
  }

  Answer replay(const Trial& trial, const RequestStream& changed) {
    const ReplayConfig& config = facts_.diagnosis->verification->config;
    WhatIf question{.rules = config.rules, .settings = trial.settings.value_or(config.settings), .cap_bytes = {}};
    const auto replayed = [&](std::optional<int64_t> cap) {
      budget_ -= static_cast<int64_t>(changed.kind.size());
      question.cap_bytes = cap;
      question.cap_kind = cap_kind();
      question.cap_from_event = cap ? limit_from_ : 0;
      return replay_range(changed, question);
    };
    if (!facts_.failed()) return {.result = Ending::completes, .outcome = replayed(recorded_cap()), .trial = &trial};
    const Capacity& capacity = facts_.diagnosis->capacity;
    const OutcomeRange low = replayed(capacity.low_bytes);
    if (low.main.completed) return {.result = Ending::completes, .outcome = low, .trial = &trial};
    const uint32_t stopped_at = low.main.stopped_at_event == kNoEvent ? 0 : low.main.stopped_at_event;
    if (stopped_at < first_effect(trial, changed))
      return {.result = Ending::too_early, .outcome = low, .trial = &trial};
    if (capacity.high_bytes > capacity.low_bytes) {
      const OutcomeRange high = replayed(capacity.high_bytes);
      if (high.main.completed) return {.result = Ending::open, .outcome = high, .trial = &trial};
    }
    return {.result = Ending::fails, .outcome = low, .trial = &trial};
  }

  void write(const Answer& answer, Change& change) const {
    if (!change.predicted) change.predicted = Predicted{};
    Predicted& predicted = *change.predicted;
    if (facts_.failed() && answer.result != Ending::open) predicted.completed = answer.result == Ending::completes;
    predicted.premise = answer.trial->premise;
    predicted.peak_reserved = answer.outcome.main.peak_reserved;
    predicted.peak_reserved_low = answer.outcome.peak_reserved_low;
    predicted.peak_reserved_high = answer.outcome.peak_reserved_high;
    const char* key = !facts_.failed()                ? "replay-of-peak"
                      : answer.result == Ending::open ? "replay-in-range"
                                                      : "replay";
    predicted.source = Phrase{.key = "cause.predicted." + std::string(key)}
                           .with("what", {answer.trial->what})
                           .with("low", format_mib(facts_.diagnosis->capacity.low_bytes))
                           .with("high", format_mib(facts_.diagnosis->capacity.high_bytes));
  }

  // The first event at which the trial changes anything.
  [[nodiscard]] uint32_t first_effect(const Trial& trial, const RequestStream& changed) const {
    if (trial.settings || trial.edits.shares_pools) return 0;
    uint32_t event = 0;
    for (size_t i = 0; i < requests_.kind.size(); ++i) {
      const RequestKind kind = requests_.kind[i];
      const uint32_t id = requests_.id[i];
      const bool is_same = i < changed.kind.size() && changed.kind[i] == kind && changed.id[i] == id;
      if (kind == RequestKind::malloc && requests_.begin[id] != kNoEvent) event = requests_.begin[id];
      if (!is_same || (kind == RequestKind::malloc && changed.size[id] != requests_.size[id])) return event;
      if (kind == RequestKind::failed && changed.failures[id].size != requests_.failures[id].size)
        return requests_.failures[id].event;
    }
    return kNoEvent;
  }

  static void say_why_not(Change& change, std::string_view key) {
    if (!change.predicted) change.predicted = Predicted{};
    const bool computed = change.predicted->saved_bytes.has_value();
    change.predicted->source = Phrase{.key = "cause.predicted." + std::string(key) + (computed ? "-computed" : "")};
  }

  const RunFacts& facts_;
  RequestStream requests_;
  std::optional<Job> job_;
  int64_t budget_;
  uint32_t limit_from_ = 0;  // event
  std::optional<int64_t> reserved_as_recorded_;
  std::optional<bool> is_reproduced_;
};

// Replayed, and not enough.
bool falls_short(const Change& change) {
  return change.predicted && change.predicted->completed.has_value() && !*change.predicted->completed;
}

// Of a recording that completed: no less is reserved than without the change.
bool brings_nothing(const Change& change, int64_t reserved_as_recorded) {
  return change.predicted && change.predicted->peak_reserved &&
         *change.predicted->peak_reserved >= reserved_as_recorded;
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
    if (!facts.failed() && tried > 0) {
      const int64_t reserved = tester.reserved_as_recorded();
      std::erase_if(changes, [&](const Change& change) { return brings_nothing(change, reserved); });
    }
    std::stable_partition(changes.begin(), changes.end(), [](const Change& change) { return !falls_short(change); });
  }
}

}  // namespace oomscope
