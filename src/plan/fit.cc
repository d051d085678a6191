// The largest value is found by doubling and bisection, each step decided by replays. Far from the cap two replays
// decide (nothing refused without a limit, or more bytes live than the cap); near it a ladder of caps around it does.
#include "plan/fit.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "model/structure.h"
#include "replay/parallel.h"

namespace oomscope {
namespace {

constexpr int64_t kMostValue = int64_t{1} << 32;
constexpr int kRungs = 6;
constexpr double kIsland = 0.03;     // how far above the cap a larger one may still fail
constexpr double kFarIsland = 0.02;  // an edge that is so far above is no matter of details
constexpr std::array<std::string_view, 4> kConfs = {"", "expandable_segments:True", "max_split_size_mb:128",
                                                    "garbage_collection_threshold:0.8"};

WhatIf with_share_of_cap(WhatIf question, double share) {
  question.cap_bytes = static_cast<int64_t>(static_cast<double>(*question.cap_bytes) * share);
  return question;
}

// Does it complete in a share of the cap, wherever the driver puts segments?
bool completes_everywhere(const RequestStream& requests, const WhatIf& question, double share) {
  const WhatIf own = with_share_of_cap(question, share);
  OutcomeRange range = replay_main(requests, own);
  if (range.main.completed) look_for_range(requests, own, range);
  return range.completed_everywhere;
}

// Is it refused in a share of the cap: wherever the driver puts segments, or at least where drivers that we have seen
// put them?
struct Refused {
  bool everywhere = false;
  bool as_observed = false;
};
Refused refused_in(const RequestStream& requests, const WhatIf& question, double share) {
  const WhatIf own = with_share_of_cap(question, share);
  OutcomeRange range = replay_main(requests, own);
  if (!range.main.completed) look_for_range(requests, own, range);
  return {.everywhere = !range.completed_somewhere, .as_observed = !range.main.completed};
}

// Caps around the given one decide: a run that completes in it and fails in a larger one is an island below the edge.
bool fits_near_the_edge(const RequestStream& requests, const WhatIf& question, double margin) {
  for (int rung = 0; rung <= kRungs; ++rung) {
    if (!completes_everywhere(requests, question, 1 - margin * rung / kRungs)) return false;
  }
  for (int rung = 1; rung <= kRungs; ++rung) {
    if (!completes_everywhere(requests, question, 1 + kIsland * rung / kRungs)) return false;
  }
  return true;
}

bool fails_near_the_edge(const RequestStream& requests, const WhatIf& question, double margin) {
  bool all_fail = true;  // from the cap up to the margin
  for (int rung = 0; rung <= kRungs; ++rung) {
    const double above = kIsland * rung / kRungs;
    if (above < kFarIsland && !(all_fail && above <= margin)) continue;
    const Refused refused = refused_in(requests, question, 1 + above);
    if (refused.as_observed && above >= kFarIsland) return true;
    if (above <= margin) all_fail = all_fail && refused.everywhere;
  }
  return all_fail;
}

LimitingInstant find_instant(const Structure& structure, const RequestStream& requests) {
  LimitingInstant most;
  int64_t live = 0;
  for (size_t i = 0; i < requests.kind.size(); ++i) {
    const uint32_t id = requests.id[i];
    if (requests.kind[i] == RequestKind::free || requests.kind[i] == RequestKind::free_held) live -= requests.size[id];
    if (requests.kind[i] != RequestKind::malloc) continue;
    live += requests.size[id];
    if (live > most.requested) most = {.event = requests.begin[id], .phase = Phase::unknown, .requested = live};
  }
  if (most.event != kNoEvent && most.event < structure.span_of.size()) {
    most.phase = structure.span_at(most.event).phase;
  }
  return most;
}

// Around what it is told by the table of convolutions.
void widen(OutcomeRange& range) {
  const double reserved = static_cast<double>(range.main.peak_reserved);
  range.peak_reserved_low = std::min(range.peak_reserved_low, static_cast<int64_t>(reserved * (1 - kTableMargin)));
  range.peak_reserved_high = std::max(range.peak_reserved_high, static_cast<int64_t>(reserved * (1 + kTableMargin)));
}

// Where scratch is guessed: the middle one of the guesses by what it reserves, and their range.
OutcomeRange outcome_at(const ScalingModel& model, int64_t value, const WhatIf& question) {
  OutcomeRange range = replay_range(run_at(model, value), question);
  if (model.forecast && !is_recorded(model, value)) widen(range);
  if (is_recorded(model, value) || !model.is_guessed(value)) return range;
  std::vector<Outcome> outcomes = {range.main};
  for (uint32_t variant = 1; variant < kVariants; ++variant) {
    outcomes.push_back(replay_what_if(requests_at(model, value, variant), question));
  }
  std::sort(outcomes.begin(), outcomes.end(),
            [](const Outcome& a, const Outcome& b) { return a.peak_reserved < b.peak_reserved; });
  range.main = outcomes[outcomes.size() / 2];
  for (uint32_t variant = kWideVariant; variant <= kHighVariant; ++variant) {
    outcomes.push_back(replay_what_if(requests_at(model, value, variant), question));
  }
  for (const Outcome& outcome : outcomes) {
    range.peak_reserved_low = std::min(range.peak_reserved_low, outcome.peak_reserved);
    range.peak_reserved_high = std::max(range.peak_reserved_high, outcome.peak_reserved);
  }
  if (model.forecast) widen(range);
  return range;
}

// Recorded values, and from the largest on twice and twice again, to beyond what fits.
std::vector<int64_t> values_to_show(const ScalingModel& model, const FitQuestion& question, const Fit& fit) {
  std::vector<int64_t> values = model.values;
  if (question.at) values.push_back(*question.at);
  if (model.values.size() > 1) {
    const int64_t end = fit.largest ? *fit.largest : model.base_value() * 16;
    for (int64_t value = model.base_value() * 2; value < end && values.size() < 24; value *= 2) values.push_back(value);
    if (question.cap_bytes && fit.largest) {
      values.push_back(*fit.largest);
      values.push_back(*fit.largest + 1);
    }
    if (!fit.largest && !question.cap_bytes) values.push_back(end);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<FitSetting> settings_to_try(const FitQuestion& question) {
  std::vector<FitSetting> list;
  const auto add = [&](std::string conf, const AllocatorSettings& settings) {
    const bool known =
        std::any_of(list.begin(), list.end(), [&](const FitSetting& s) { return s.settings == settings; });
    if (!known) list.push_back({.conf = std::move(conf), .settings = settings, .largest = {}});
  };
  add(to_conf_string(question.settings, question.rules.parser), question.settings);
  for (std::string_view conf : kConfs) {
    const Result<ParsedSettings> parsed = parse_allocator_settings(conf, question.rules.parser);
    if (parsed) add(std::string(conf), parsed->settings);
  }
  return list;
}

}  // namespace

std::string_view name_of(Fits fits) {
  switch (fits) {
    case Fits::yes: return "yes";
    case Fits::no: return "no";
    case Fits::unknown: return "unknown";
  }
  return "unknown";
}

namespace {

// What a replay without a limit decides, far from the cap; near it, within what margin caps are to be tried.
struct FromAfar {
  Fits fits = Fits::unknown;
  double margin = 0;
};
FromAfar look_from_afar(const RequestStream& requests, const WhatIf& question) {
  WhatIf unlimited = question;
  unlimited.cap_bytes.reset();
  const double cap = static_cast<double>(*question.cap_bytes);
  const OutcomeRange free_run = replay_range(requests, unlimited);
  const bool is_exact = free_run.main.address_ties == 0;
  const double margin = is_exact ? kExactMargin : kSureMargin;
  const bool is_too_large =  // the first: more than any card has
      !free_run.main.completed || static_cast<double>(free_run.main.peak_requested) > cap * (1 + margin);
  if (is_too_large) return {.fits = Fits::no, .margin = margin};
  const bool collects = question.settings.garbage_collection_threshold > 0;  // changes the run before the cap is met
  const double may_be_larger = is_exact ? 0 : kAddressMargin;
  const bool never_meets_it =
      !collects && static_cast<double>(free_run.peak_reserved_high) * (1 + may_be_larger) <= cap;
  return {.fits = never_meets_it ? Fits::yes : Fits::unknown, .margin = margin};
}

bool surely_fails(const RequestStream& requests, const WhatIf& question, double error) {
  const WhatIf larger = with_share_of_cap(question, 1 + error);
  const FromAfar seen = look_from_afar(requests, larger);
  return seen.fits == Fits::unknown ? fails_near_the_edge(requests, larger, seen.margin) : seen.fits == Fits::no;
}

// Do all guesses of its scratch, be they likely or not, lead to that answer, yes or no?
bool is_surely(Fits answer, const ScalingModel& model, int64_t value, const WhatIf& question) {
  const double error = model.forecast && !is_recorded(model, value) ? kTableMargin : 0;
  const auto decide = answer == Fits::yes ? surely_fits : surely_fails;
  if (is_recorded(model, value) || !model.is_guessed(value)) return decide(run_at(model, value), question, error);
  // The one that most likely speaks against it first.
  std::vector<uint32_t> variants = {answer == Fits::yes ? kHighVariant : kLowVariant};
  for (uint32_t variant = 0; variant <= kHighVariant; ++variant) variants.push_back(variant);
  std::set<std::pair<std::vector<int64_t>, std::vector<uint32_t>>> seen;  // most guesses are alike
  return std::all_of(variants.begin(), variants.end(), [&](uint32_t variant) {
    const RequestStream requests = requests_at(model, value, variant);
    return !seen.emplace(requests.size, requests.id).second || decide(requests, question, error);
  });
}

// The largest value that surely fits, by doubling and bisection.
std::optional<int64_t> find_largest(const ScalingModel& model, const WhatIf& question) {
  const auto fits = [&](int64_t value) { return is_surely(Fits::yes, model, value, question); };
  int64_t low = 0;
  int64_t high = std::max<int64_t>(model.base_value(), 1);
  while (high < kMostValue && fits(high)) low = std::exchange(high, high * 2);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low > 0 ? std::optional<int64_t>(low) : std::nullopt;
}

// The first value from `from` on that surely does not fit, if there is one in reach.
std::optional<int64_t> find_first_no(const ScalingModel& model, const WhatIf& question, int64_t from) {
  const auto fails = [&](int64_t value) { return is_surely(Fits::no, model, value, question); };
  int64_t low = from - 1;
  int64_t high = from;
  for (int64_t step = 1; !fails(high); step *= 2) {
    if (high > kMostValue) return std::nullopt;
    low = std::exchange(high, high + step);
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fails(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

bool surely_fits(const RequestStream& requests, const WhatIf& question, double error) {
  const WhatIf smaller = with_share_of_cap(question, 1 - error);
  const FromAfar seen = look_from_afar(requests, smaller);
  return seen.fits == Fits::unknown ? fits_near_the_edge(requests, smaller, seen.margin) : seen.fits == Fits::yes;
}

Fits fits_in(const RequestStream& requests, const WhatIf& question, double error) {
  if (surely_fits(requests, question, error)) return Fits::yes;
  return surely_fails(requests, question, error) ? Fits::no : Fits::unknown;
}

Fits fits_at(const ScalingModel& model, int64_t value, const WhatIf& question) {
  if (is_surely(Fits::yes, model, value, question)) return Fits::yes;
  return is_surely(Fits::no, model, value, question) ? Fits::no : Fits::unknown;
}

Fit find_fit(const ScalingModel& model, const FitQuestion& question) {
  Fit fit;
  fit.by_setting = settings_to_try(question);
  const WhatIf unlimited{.rules = question.rules, .settings = question.settings, .cap_bytes = {}};
  WhatIf limited = unlimited;
  limited.cap_bytes = question.cap_bytes;
  limited.cap_kind = question.cap_kind;
  if (question.cap_bytes && model.values.size() > 1) {
    run_parallel(
        fit.by_setting.size(), question.threads,
        [&](size_t i) {
          WhatIf own = limited;
          own.settings = fit.by_setting[i].settings;
          fit.by_setting[i].largest = find_largest(model, own);
          if (i == 0) fit.largest_maybe = find_first_no(model, own, fit.by_setting[i].largest.value_or(0) + 1);
        },
        question.progress);
    fit.largest = fit.by_setting.front().largest;
  }
  const Structure structure = find_structure(model.base.verification->timeline);
  for (int64_t value : values_to_show(model, question, fit)) {
    fit.points.push_back({.value = value,
                          .recorded = is_recorded(model, value),
                          .outcome = {},
                          .limited = {},
                          .fits = {},
                          .instant = {}});
  }
  run_parallel(
      fit.points.size(), question.threads,
      [&](size_t i) {
        FitPoint& point = fit.points[i];
        point.outcome = outcome_at(model, point.value, unlimited);
        if (question.cap_bytes) {
          point.limited = replay_what_if(run_at(model, point.value), limited);
          point.fits = fits_at(model, point.value, limited);
        }
        point.instant = find_instant(structure, requests_at(model, point.value));
      },
      question.progress);
  return fit;
}

}  // namespace oomscope
