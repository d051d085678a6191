#include "report/measures_document.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "remedies/remedy.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSetsShown = 3;
constexpr std::array<std::string_view, 5> kFrameworks = {"", "transformers", "lightning", "accelerate", "deepspeed"};

std::string name_in(const Measure& measure, Language language) {
  return say(fmt::format("measure.{}", measure.id), language);
}

std::string time_text(const std::optional<double>& factor, Language language) {
  if (!factor) return say("measure.time-unknown", language);
  const int percent = static_cast<int>((*factor - 1) * 100 + (*factor < 1 ? -0.5 : 0.5));
  return percent == 0 ? "±0 %" : fmt::format("{:+} %", percent);
}

Json time_json(const std::optional<double>& factor) { return factor ? Json(*factor) : Json(nullptr); }

std::string list_names(const std::vector<const MeasureOutcome*>& outcomes, Language language, bool with_reason) {
  std::string list;
  for (const MeasureOutcome* outcome : outcomes) {
    if (!list.empty()) list += say("measure.list-comma", language);
    list += name_in(*outcome->measure, language);
    if (with_reason) list += fmt::format(" ({})", say("measure.no." + outcome->refused, language));
  }
  return list;
}

Section sentence(std::string_view key, std::string list, Language language) {
  return Section{.body = Sentence{.text = say(Phrase{.key = std::string(key)}.with("list", std::move(list)), language)},
                 .joined = true};
}

// Lines that apply a measure, for one framework.
std::vector<std::string> lines_of(const Measure& measure, std::string_view framework) {
  const Remedy* remedy = find_remedy(measure.remedy);
  if (remedy == nullptr) return {};
  Circumstances circumstances{.phase = Phase::backward};
  circumstances.framework = std::string(framework);
  circumstances.variant = std::string(measure.id);
  return change_of(*remedy, circumstances).commands;
}

std::vector<std::string> lines_of(const MeasureSet& set, std::string_view framework) {
  std::vector<std::string> lines;
  if (!set.conf.empty()) lines.push_back(fmt::format("export PYTORCH_CUDA_ALLOC_CONF={}", set.conf));
  for (const Measure* measure : set.measures) {
    const std::vector<std::string> own = lines_of(*measure, framework);
    lines.insert(lines.end(), own.begin(), own.end());
  }
  return lines;
}

std::string name_in(const MeasureSet& set, Language language) {
  std::string name;
  for (const Measure* measure : set.measures) {
    name += (name.empty() ? "" : " + ") + name_in(*measure, language);
  }
  if (!set.conf.empty()) name += (name.empty() ? "" : " + ") + set.conf;
  return name.empty() ? say("measure.none", language) : name;
}

}  // namespace

std::vector<Section> measures_sections(const std::vector<MeasureOutcome>& measures, bool has_cap, Language language) {
  std::vector<const MeasureOutcome*> helpful;
  std::vector<const MeasureOutcome*> useless;
  std::vector<const MeasureOutcome*> refused;
  for (const MeasureOutcome& outcome : measures) {
    (!outcome.refused.empty() ? refused : outcome.brings_nothing ? useless : helpful).push_back(&outcome);
  }
  std::stable_sort(helpful.begin(), helpful.end(), [](const MeasureOutcome* a, const MeasureOutcome* b) {
    return a->saved_allocated > b->saved_allocated;
  });
  std::vector<Section> sections;
  if (measures.empty()) return sections;
  Table table{.title = say("measure.title", language),
              .columns = {{.header = say("measure.name", language), .may_shrink = true},
                          {.header = say("measure.peak", language), .align = Align::right},
                          {.header = say("measure.saves", language), .align = Align::right},
                          {.header = say("measure.time", language), .align = Align::right},
                          {.header = has_cap ? say("fit.fits", language) : ""}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const MeasureOutcome* outcome : helpful) {
    table.rows.push_back(
        Row{.cells = {name_in(*outcome->measure, language), format_mib(outcome->outcome.peak_allocated),
                      format_mib(outcome->saved_allocated), time_text(outcome->measure->time_factor, language),
                      has_cap ? say(outcome->fits ? "fit.fits.yes" : "fit.fits.no", language) : ""},
            .style = Style::plain});
  }
  if (!table.rows.empty()) sections.push_back(Section{.body = std::move(table), .joined = false});
  if (!useless.empty())
    sections.push_back(sentence("measure.bring-nothing", list_names(useless, language, false), language));
  if (!refused.empty()) sections.push_back(sentence("measure.refused", list_names(refused, language, true), language));
  const bool is_compiled = std::any_of(refused.begin(), refused.end(),
                                       [](const MeasureOutcome* outcome) { return outcome->refused == "compiled"; });
  if (is_compiled) {
    sections.push_back(Section{.body = Sentence{.text = say("measure.record-compiled", language)}, .joined = true});
  }
  return sections;
}

Json measures_json(const std::vector<MeasureOutcome>& measures, bool has_cap) {
  Json list = Json::array();
  for (const MeasureOutcome& outcome : measures) {
    Json entry = {{"id", outcome.measure->id},
                  {"remedy", outcome.measure->remedy},
                  {"text", name_in(*outcome.measure, Language::english)}};
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
                            {"completed", has_cap ? Json(outcome.fits) : Json(nullptr)}};
    }
    entry["time_factor"] = time_json(outcome.measure->time_factor);
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<Section> sets_sections(const SetSearch& search, Language language) {
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
    table.rows.push_back(Row{
        .cells = {name_in(set, language), format_mib(set.outcome.peak_reserved), time_text(set.time_factor, language)},
        .style = Style::plain});
  }
  sections.push_back(Section{.body = std::move(table), .joined = false});
  std::vector<std::string> lines = lines_of(search.fitting.front(), "");
  if (!lines.empty()) {
    sections.push_back(
        Section{.body = Lines{.title = "", .lines = std::move(lines), .style = Style::green}, .joined = true});
  }
  return sections;
}

Json sets_json(const SetSearch& search) {
  Json json = {{"combinations", search.combinations}, {"replayed", search.replayed}, {"sets", Json::array()}};
  for (const MeasureSet& set : search.fitting) {
    Json entry = {{"measures", Json::array()},
                  {"conf", set.conf},
                  {"peak_allocated", set.outcome.peak_allocated},
                  {"peak_reserved", set.outcome.peak_reserved},
                  {"time_factor", time_json(set.time_factor)},
                  {"snippets", Json::object()}};
    for (const Measure* measure : set.measures) entry["measures"].push_back(measure->id);
    for (std::string_view framework : kFrameworks) {
      entry["snippets"][framework.empty() ? "pytorch" : std::string(framework)] = lines_of(set, framework);
    }
    json["sets"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace oomscope
