#include "report/proposed_changes.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/bytes_text.h"
#include "remedies/remedy.h"

namespace oomscope {
namespace {

// The first form of a remedy that brings something, in the order of the catalogue: the usual one stands first.
const MeasureOutcome* form_of(const std::string& remedy, const std::vector<MeasureOutcome>& measures) {
  const MeasureOutcome* first = nullptr;
  for (const MeasureOutcome& outcome : measures) {
    if (!outcome.refused.empty() || outcome.measure.remedy != remedy) continue;
    if (!outcome.brings_nothing) return &outcome;
    if (first == nullptr) first = &outcome;
  }
  return first;
}

// The job does so by itself: it is checkpointed, or computes in 16 bits.
bool is_done_already(const std::string& remedy, const std::vector<MeasureOutcome>& measures) {
  bool already = false;
  for (const MeasureOutcome& outcome : measures) {
    if (outcome.measure.remedy != remedy) continue;
    if (outcome.refused.empty()) return false;
    already = already || outcome.refused.starts_with("already-");
  }
  return already;
}

// Of a recording that completed: no less is reserved than without the change.
bool brings_nothing(const Change& change, const Changes& changes) {
  return change.predicted && change.predicted->peak_reserved &&
         *change.predicted->peak_reserved >= changes.recorded_reserved_bytes;
}

// Lines for that form, where they are others than the usual ones.
void set_commands(const Measure& measure, Change& change) {
  const Remedy* remedy = find_remedy(change.remedy);
  if (remedy == nullptr) return;
  const Circumstances form{.variant = measure.id,
                           .number = measure.number > 0 ? std::optional(measure.number) : std::nullopt,
                           .has_momentum_alone = measure.for_momentum};
  std::vector<std::string> commands = change_of(*remedy, form).commands;
  if (commands != change_of(*remedy, Circumstances{}).commands) change.commands = std::move(commands);
}

}  // namespace

std::string paste_line(const std::string& conf) {
  return conf.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF=" + conf;
}

bool was_tried(const Change& change) {
  if (!change.predicted) return false;
  const Predicted& predicted = *change.predicted;
  return predicted.completed || predicted.peak_reserved || predicted.source.key.find("late-limit") != std::string::npos;
}

void add_measures(std::vector<Finding>& findings, const Changes& changes) {
  const bool completed = !changes.runs.empty() && changes.verdicts.empty();
  for (Finding& finding : findings) {
    for (Change& change : finding.changes) {
      const MeasureOutcome* form = was_tried(change) ? nullptr : form_of(change.remedy, changes.measures);
      if (form == nullptr) continue;
      Predicted predicted;
      const bool decided = changes.measures_have_cap && form->fits != Fits::unknown;
      if (decided) predicted.completed = form->fits == Fits::yes;
      predicted.peak_reserved = decided ? form->capped_reserved : form->outcome.peak_reserved;
      predicted.saved_bytes = std::max<int64_t>(form->saved_allocated, 0);
      predicted.source = Phrase{.key = "measure.replayed"}.with("measure", name_of(form->measure));
      change.predicted = predicted;
      set_commands(form->measure, change);
    }
    std::erase_if(finding.changes,
                  [&](const Change& change) { return is_done_already(change.remedy, changes.measures); });
    if (completed)
      std::erase_if(finding.changes, [&](const Change& change) { return brings_nothing(change, changes); });
  }
}

namespace {

// A setting costs nothing, so where nothing is at fault but the amount, it comes first if it brings as much as the
// rest.
bool is_best(const Change& setting, const std::string& cause, const std::vector<Change>& others) {
  if (cause == "capacity") return setting.predicted->completed.value_or(false);
  if (cause != "none") return false;
  return std::all_of(others.begin(), others.end(), [&](const Change& other) {
    return !other.predicted || !other.predicted->peak_reserved ||
           *other.predicted->peak_reserved >= *setting.predicted->peak_reserved;
  });
}

}  // namespace

void add_best_setting(std::vector<Finding>& findings, const Diagnosis& diagnosis, const Changes& changes) {
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  if (list.empty() || findings.empty()) return;
  const SweepRun& run = *list.front();
  const std::optional<bool> completed = changes.at_high_end ? std::nullopt : std::optional(run.outcome.main.completed);
  const Predicted predicted{
      .completed = completed,
      .peak_reserved = run.outcome.main.peak_reserved,
      .peak_reserved_low = run.outcome.reserved_low(),
      .peak_reserved_high = run.outcome.reserved_high(),
      .saved_bytes = std::nullopt,
      .source = Phrase{.key = "finding.replay"}.with(
          "events", format_count(static_cast<int64_t>(diagnosis.verification->timeline.trace().size_events())))};
  const Change setting{.remedy = "allocator-setting",
                       .text = Phrase{.key = "remedy.allocator-setting.text"}.with("setting", paste_line(run.conf)),
                       .commands = {paste_line(run.conf)},
                       .predicted = predicted};
  std::vector<Change>& all = findings.front().changes;
  const auto named =
      std::find_if(all.begin(), all.end(), [](const Change& change) { return change.remedy == "allocator-setting"; });
  const bool was_first = named != all.end() && named == all.begin();
  if (named != all.end()) all.erase(named);
  all.insert(was_first || is_best(setting, findings.front().id, all) ? all.begin() : all.end(), setting);
}

}  // namespace oomscope
