#include "analysis/diff.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "model/fatal_oom.h"
#include "model/structure.h"
#include "types/allocator_settings.h"

namespace oomscope {
namespace {

Phrase text(std::string value) { return Phrase{.key = "diff.value", .values = {}}.with("value", std::move(value)); }

Phrase recorded_conf(const Verification& verification) {
  const std::optional<RecordedSettings>& settings = verification.timeline.snapshot->settings;
  if (!settings || !settings->conf) return {};
  return settings->conf->empty() ? Phrase{.key = "diff.value.default", .values = {}} : text(*settings->conf);
}

Phrase effective_settings(const Verification& verification) {
  const std::string conf = to_conf_string(verification.config.settings, verification.config.rules.parser);
  return conf.empty() ? Phrase{.key = "diff.value.default", .values = {}} : text(conf);
}

Phrase limit_of(const Verification& verification) {
  const std::optional<LimitRange>& limit = verification.limit;
  if (!limit) return Phrase{.key = "diff.value.no-limit", .values = {}};
  if (limit->low_bytes == limit->high_bytes) return text(format_bytes(limit->low_bytes));
  return text(format_bytes(limit->low_bytes) + " - " + format_bytes(limit->high_bytes));
}

Phrase history_of(const Verification& verification) {
  const Timeline& timeline = verification.timeline;
  if (timeline.trace().size_events() == 0) return Phrase{.key = "diff.value.no-history", .values = {}};
  return Phrase{.key = timeline.starts_mid_life ? "diff.value.mid-life" : "diff.value.from-start", .values = {}};
}

Phrase outcome_of(const Verification& verification) {
  const Trace& trace = verification.timeline.trace();
  const std::optional<uint32_t> failed = fatal_oom(trace);
  if (!failed) return Phrase{.key = "diff.value.not-failed", .values = {}};
  return Phrase{.key = "diff.value.failed", .values = {}}.with("bytes", format_bytes(trace.size[*failed]));
}

// Could one release of PyTorch have written both?
bool may_share_rules(const Verification& a, const Verification& b) {
  if (a.config.rules.name == b.config.rules.name) return true;
  std::vector<std::string_view> of_a = equally_exact_rules(a);
  of_a.push_back(a.config.rules.name);
  std::vector<std::string_view> of_b = equally_exact_rules(b);
  of_b.push_back(b.config.rules.name);
  return std::find_first_of(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) != of_a.end();
}

bool same_phrase(const Phrase& a, const Phrase& b) {
  const std::string a_text = a.values.empty() ? "" : a.values.front().text;
  const std::string b_text = b.values.empty() ? "" : b.values.front().text;
  return a.key == b.key && a_text == b_text;
}

std::vector<SettingDifference> setting_differences(const Verification& a, const Verification& b) {
  std::vector<SettingDifference> all = {
      {.id = "conf", .a = recorded_conf(a), .b = recorded_conf(b)},
      {.id = "settings", .a = effective_settings(a), .b = effective_settings(b)},
      {.id = "limit", .a = limit_of(a), .b = limit_of(b)},
      {.id = "history", .a = history_of(a), .b = history_of(b)},
      {.id = "outcome", .a = outcome_of(a), .b = outcome_of(b)},
      {.id = "device",
       .a = text(fmt::format("{}", a.timeline.device)),
       .b = text(fmt::format("{}", b.timeline.device))},
  };
  if (!may_share_rules(a, b)) {
    all.push_back(
        {.id = "rules", .a = text(std::string(a.config.rules.name)), .b = text(std::string(b.config.rules.name))});
  }
  all.erase(
      std::remove_if(all.begin(), all.end(), [](const SettingDifference& each) { return same_phrase(each.a, each.b); }),
      all.end());
  return all;
}

// Events [begin, end): times ascend, as the recorder wrote them.
struct EventSpan {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Steps as they are found where none are marked, numbered from 1; what follows the last is one too.
std::vector<EventSpan> found_steps(const Verification& verification) {
  const Structure structure = find_structure(verification.timeline);
  const uint32_t events = static_cast<uint32_t>(verification.timeline.trace().size_events());
  std::vector<EventSpan> steps;
  for (uint32_t end : structure.step_ends) steps.push_back({steps.empty() ? 0 : steps.back().end, end});
  if (!steps.empty() && steps.back().end < events) steps.push_back({steps.back().end, events});
  return steps;
}

Result<EventSpan> span_of_step(const Verification& verification, int64_t wanted) {
  const Snapshot& snapshot = *verification.timeline.snapshot;
  const LargeVector<int64_t>& times = verification.timeline.trace().time_us;
  const auto event_at = [&](int64_t time_us) {
    return static_cast<uint32_t>(std::lower_bound(times.begin(), times.end(), time_us) - times.begin());
  };
  std::optional<EventSpan> span;
  std::optional<int64_t> first;
  int64_t last = 0;
  for (const Annotation& annotation : snapshot.annotations) {
    const std::optional<int64_t> step = marked_step(snapshot.strings.text(annotation.name));
    if (!step) continue;
    first = std::min(first.value_or(*step), *step);
    last = std::max(last, *step);
    if (*step != wanted) continue;
    if (annotation.is_start) span = EventSpan{event_at(annotation.time_us), static_cast<uint32_t>(times.size())};
    if (!annotation.is_start && span) span->end = event_at(annotation.time_us);
  }
  if (span && span->begin < span->end) return *span;
  if (!first) {
    const std::vector<EventSpan> steps = found_steps(verification);
    if (wanted >= 1 && wanted <= static_cast<int64_t>(steps.size())) return steps[static_cast<size_t>(wanted - 1)];
    first = steps.empty() ? std::nullopt : std::optional<int64_t>(1);
    last = static_cast<int64_t>(steps.size());
  }
  if (!first) {
    return Error{.code = "steps-unknown",
                 .what = "error.steps-unknown",
                 .where = fmt::format("--at step {}", wanted),
                 .hint = "error.steps-unknown.hint"};
  }
  return Error{.code = "step-not-found",
               .what = "error.step-not-found",
               .where = fmt::format("--at step {}", wanted),
               .hint = fmt::format("--at step {}", last),
               .values = {{"first", std::to_string(*first)}, {"last", std::to_string(last)}}};
}

Result<Shown> state_at(const Verification& verification, const DiffMoment& moment) {
  if (!moment.step) return show_state(verification, moment.moment, 0, GroupBy::stack, /*with_curve=*/false);
  OOM_TRY(const uint32_t event, peak_of_step(verification, *moment.step));
  OOM_TRY(Shown shown, show_state(verification, Moment::event, event, GroupBy::stack, /*with_curve=*/false));
  shown.at = Phrase{.key = "moment.step"}
                 .with("step", std::to_string(*moment.step))
                 .with("event", format_count(event))
                 .with("events", format_count(shown.totals.events));
  return shown;
}

Result<Shown> state_of_side(const char* side, const Verification& verification, const DiffMoment& moment) {
  Result<Shown> shown = state_at(verification, moment);
  if (shown) return shown;
  Error error = shown.error();
  error.where = fmt::format("{}, {}", side, error.where);
  if (error.code == "no-oom-event") error.hint = "oomscope diff A B --at peak";
  return error;
}

}  // namespace

Result<uint32_t> peak_of_step(const Verification& verification, int64_t step) {
  OOM_TRY(const EventSpan span, span_of_step(verification, step));
  const Timeline& timeline = verification.timeline;
  const Trace& trace = timeline.trace();
  int64_t allocated = 0;  // since the first event: only differences count
  std::optional<int64_t> most;
  uint32_t at = span.begin;
  for (uint32_t event = 0; event < span.end; ++event) {
    const uint32_t id = timeline.allocation_of[event];
    if (id == kNoAllocation) continue;
    if (trace.action[event] == Action::alloc) allocated += timeline.allocations.size_of(id);
    if (trace.action[event] == Action::free_requested) allocated -= timeline.allocations.size_of(id);
    if (event < span.begin || (most && allocated <= *most)) continue;
    most = allocated;
    at = event;
  }
  return at;
}

Result<Diff> find_differences(const Verification& a, const Verification& b, const DiffMoment& moment) {
  Diff diff;
  OOM_TRY(diff.a, state_of_side("A", a, moment));
  OOM_TRY(diff.b, state_of_side("B", b, moment));
  diff.rows = match_sites(live_sites(a, diff.a.event), live_sites(b, diff.b.event));
  diff.settings = setting_differences(a, b);
  return diff;
}

}  // namespace oomscope
