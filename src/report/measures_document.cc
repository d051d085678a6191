#include "report/measures_document.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "remedies/recipe.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSetsShown = 3;
constexpr std::array<std::string_view, 5> kFrameworks = {"", "transformers", "lightning", "accelerate", "deepspeed"};

std::string name_in(const Measure& measure, Language language) { return say(name_of(measure), language); }

std::string time_text(const std::optional<double>& factor, Language language) {
  if (!factor) return say("measure.time-unknown", language);
  const int percent = static_cast<int>((*factor - 1) * 100 + (*factor < 1 ? -0.5 : 0.5));
  return percent == 0 ? "±0 %" : fmt::format("{:+} %", percent);
}

Json time_json(const std::optional<double>& factor) { return factor ? Json(*factor) : Json(nullptr); }

std::string list_names(const std::vector<const MeasureOutcome*>& outcomes, Language language) {
  std::string list;
  for (const MeasureOutcome* outcome : outcomes) {
    if (!list.empty()) list += say("measure.list-comma", language);
    list += name_in(outcome->measure, language);
  }
  return list;
}

bool needs_more(const MeasureOutcome& outcome) {
  const int64_t before = outcome.outcome.peak_allocated + outcome.saved_allocated;
  return static_cast<double>(-outcome.saved_allocated) > kNothing * static_cast<double>(before);
}

std::string list_needs(const std::vector<const MeasureOutcome*>& outcomes, Language language) {
  std::string list;
  for (const MeasureOutcome* outcome : outcomes) {
    if (!list.empty()) list += say("measure.list-comma", language);
    list += say(Phrase{.key = "measure.needs"}
                    .with("measure", name_of(outcome->measure))
                    .with("bytes", format_mib(-outcome->saved_allocated)),
                language);
  }
  return list;
}

// By reason: several measures are refused for one.
std::vector<std::string> list_reasons(const std::vector<const MeasureOutcome*>& refused, Language language) {
  std::vector<std::string> reasons;
  for (const MeasureOutcome* outcome : refused) {
    if (std::find(reasons.begin(), reasons.end(), outcome->refused) == reasons.end())
      reasons.push_back(outcome->refused);
  }
  std::vector<std::string> entries;
  for (const std::string& reason : reasons) {
    std::vector<const MeasureOutcome*> same;
    std::copy_if(refused.begin(), refused.end(), std::back_inserter(same),
                 [&](const MeasureOutcome* outcome) { return outcome->refused == reason; });
    const Phrase entry = Phrase{.key = "measure.reason"}
                             .with("reason", Phrase{.key = "measure.no." + reason})
                             .with("list", list_names(same, language));
    entries.push_back(say(entry, language));
  }
  return entries;
}

Section sentence(std::string_view key, std::string list, Language language) {
  return Section{.body = Sentence{.text = say(Phrase{.key = std::string(key)}.with("list", std::move(list)), language)},
                 .joined = true};
}

// Lines that apply measures, together, in one framework.
std::vector<std::string> lines_of(const std::vector<Measure>& measures, const std::string& conf,
                                  std::string_view framework, std::optional<int64_t> batch) {
  Circumstances circumstances{.phase = Phase::backward, .framework = std::string(framework)};
  if (batch) circumstances.batch_size = static_cast<int>(std::min<int64_t>(*batch, INT32_MAX));
  std::vector<RemedyForm> forms;
  const auto add = [&](std::string_view id) {
    const Remedy* remedy = find_remedy(id);
    if (remedy != nullptr) forms.push_back({.remedy = remedy, .circumstances = circumstances});
  };
  if (!conf.empty()) {
    circumstances.settings = conf;
    add("allocator-setting");
  }
  for (const Measure& measure : measures) {
    circumstances.variant = measure.id;
    circumstances.has_momentum_alone = measure.for_momentum;
    circumstances.number = measure.number > 0 ? std::optional(measure.number) : std::nullopt;
    add(measure.remedy);
  }
  std::vector<std::string> lines;
  std::istringstream text(text_of(framework, forms));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

Json snippets_json(const std::vector<Measure>& measures, const std::string& conf, std::optional<int64_t> batch) {
  Json snippets = Json::object();
  for (std::string_view framework : kFrameworks) {
    snippets[framework.empty() ? "pytorch" : std::string(framework)] = lines_of(measures, conf, framework, batch);
  }
  return snippets;
}

std::string name_in(const MeasureSet& set, Language language) {
  std::string name;
  for (const Measure& measure : set.measures) {
    name += (name.empty() ? "" : " + ") + name_in(measure, language);
  }
  if (!set.conf.empty()) name += (name.empty() ? "" : " + ") + set.conf;
  return name.empty() ? say("measure.none", language) : name;
}

}  // namespace

std::vector<Section> measures_sections(const std::vector<MeasureOutcome>& measures, bool has_cap, Language language) {
  std::vector<const MeasureOutcome*> helpful;
  std::vector<const MeasureOutcome*> useless;
  std::vector<const MeasureOutcome*> harmful;
  std::vector<const MeasureOutcome*> refused;
  for (const MeasureOutcome& outcome : measures) {
    (!outcome.refused.empty()  ? refused
     : !outcome.brings_nothing ? helpful
     : needs_more(outcome)     ? harmful
                               : useless)
        .push_back(&outcome);
  }
  std::stable_sort(helpful.begin(), helpful.end(), [](const MeasureOutcome* a, const MeasureOutcome* b) {
    return a->saved_allocated > b->saved_allocated;
  });
  std::vector<Section> sections;
  if (measures.empty()) return sections;
  Table table{.title = say("measure.title", language),
              .columns = {{.header = say("measure.name", language), .may_wrap = true},
                          {.header = say("measure.peak", language), .align = Align::right},
                          {.header = say("measure.saves", language), .align = Align::right},
                          {.header = say("measure.time", language), .align = Align::right},
                          {.header = has_cap ? say("fit.fits", language) : ""}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const MeasureOutcome* outcome : helpful) {
    table.rows.push_back(
        Row{.cells = {name_in(outcome->measure, language), format_mib(outcome->outcome.peak_allocated),
                      format_mib(outcome->saved_allocated), time_text(outcome->measure.time_factor, language),
                      has_cap ? say("fit.fits." + std::string(name_of(outcome->fits)), language) : ""},
            .style = Style::plain});
  }
  if (!table.rows.empty()) sections.push_back(Section{.body = std::move(table), .joined = false});
  if (!useless.empty()) sections.push_back(sentence("measure.bring-nothing", list_names(useless, language), language));
  if (!harmful.empty()) sections.push_back(sentence("measure.need-more", list_needs(harmful, language), language));
  if (!refused.empty()) {
    sections.push_back(
        Section{.body = List{.title = say("measure.refused", language), .entries = list_reasons(refused, language)},
                .joined = false});
  }
  const bool is_compiled = std::any_of(refused.begin(), refused.end(),
                                       [](const MeasureOutcome* outcome) { return outcome->refused == "compiled"; });
  if (is_compiled) {
    sections.push_back(Section{.body = Sentence{.text = say("measure.record-compiled", language)}, .joined = true});
  }
  return sections;
}

namespace {

Json completed_json(Fits fits) { return fits == Fits::unknown ? Json(nullptr) : Json(fits == Fits::yes); }

}  // namespace

Json measures_json(const std::vector<MeasureOutcome>& measures, bool has_cap, std::optional<int64_t> batch) {
  Json list = Json::array();
  for (const MeasureOutcome& outcome : measures) {
    Json entry = {{"id", outcome.measure.id},
                  {"remedy", outcome.measure.remedy},
                  {"number", outcome.measure.number > 0 ? Json(outcome.measure.number) : Json(nullptr)},
                  {"text", name_in(outcome.measure, Language::english)}};
    if (!outcome.refused.empty()) {
      entry["refused"] = say("measure.no." + outcome.refused, Language::english);
      entry["predicted"] = nullptr;
    } else {
      entry["refused"] = nullptr;
      entry["predicted"] = {{"peak_requested", outcome.outcome.peak_requested},
                            {"peak_allocated", outcome.outcome.peak_allocated},
                            {"peak_reserved", outcome.outcome.peak_reserved},
                            {"saved_allocated", outcome.saved_allocated},
                            {"brings_nothing", outcome.brings_nothing},
                            {"completed", has_cap ? completed_json(outcome.fits) : Json(nullptr)}};
    }
    entry["error"] = outcome.measure.error;
    entry["time_factor"] = time_json(outcome.measure.time_factor);
    entry["snippets"] = outcome.refused.empty() ? snippets_json({outcome.measure}, "", batch) : Json(nullptr);
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<Section> sets_sections(const SetSearch& search, std::string_view framework, std::optional<int64_t> batch,
                                   Language language) {
  std::vector<Section> sections;
  if (search.combinations == 0) return sections;
  if (search.fitting.empty()) {
    sections.push_back(Section{.body = Sentence{.text = say("measure.no-set", language)}, .joined = false});
    return sections;
  }
  Table table{.title = say("measure.sets", language),
              .columns = {{.header = say("measure.name", language), .may_wrap = true},
                          {.header = say("fit.reserved", language), .align = Align::right},
                          {.header = say("measure.time", language), .align = Align::right}},
              .rows = {},
              .total = std::nullopt,
              .note = say(Phrase{.key = "measure.sets-note"}
                              .with("combinations", format_count(search.combinations))
                              .with("replayed", format_count(search.replayed)),
                          language)};
  for (size_t i = 0; i < std::min(kSetsShown, search.fitting.size()); ++i) {
    const MeasureSet& set = search.fitting[i];
    table.rows.push_back(Row{.cells = {name_in(set, language), format_mib(set.outcome.main.peak_reserved),
                                       time_text(set.time_factor, language)},
                             .style = Style::plain});
  }
  sections.push_back(Section{.body = std::move(table), .joined = false});
  std::vector<std::string> lines =
      lines_of(search.fitting.front().measures, search.fitting.front().conf, framework, batch);
  if (!lines.empty()) {
    sections.push_back(
        Section{.body = Lines{.title = "", .lines = std::move(lines), .style = Style::green}, .joined = true});
  }
  return sections;
}

Json sets_json(const SetSearch& search, std::optional<int64_t> batch) {
  Json json = {{"combinations", search.combinations}, {"replayed", search.replayed}, {"sets", Json::array()}};
  for (const MeasureSet& set : search.fitting) {
    Json entry = {{"measures", Json::array()},
                  {"conf", set.conf},
                  {"peak_allocated", set.outcome.main.peak_allocated},
                  {"peak_reserved", set.outcome.main.peak_reserved},
                  {"time_factor", time_json(set.time_factor)},
                  {"rank_cost", set.cost},
                  {"ranked_by", set.time_factor ? "time" : "class"},
                  {"snippets", snippets_json(set.measures, set.conf, batch)}};
    for (const Measure& measure : set.measures) entry["measures"].push_back(measure.id);
    json["sets"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace oomscope
