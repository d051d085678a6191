#include "report/baseline_document.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

Phrase baseline_phrase(const char* key) { return Phrase{.key = std::string("baseline.") + key, .values = {}}; }

// "2026-11-28 12:03 UTC".
std::string time_text(int64_t time_s) {
  const std::chrono::sys_seconds time{std::chrono::seconds(time_s)};
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  const std::chrono::hh_mm_ss clock{time - std::chrono::floor<std::chrono::days>(time)};
  return fmt::format("{}-{:02}-{:02} {:02}:{:02} UTC", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count());
}

Json entry_json(const BaselineEntry& entry) {
  return {{"project", entry.project},
          {"name", entry.name},
          {"configuration", entry.configuration},
          {"saved_at", entry.saved_at_s},
          {"command", entry.peaks.command},
          {"steps", entry.peaks.steps},
          {"peak_allocated", entry.peaks.all.allocated_bytes},
          {"peak_reserved", entry.peaks.all.reserved_bytes}};
}

Json environment_json(const Peaks& peaks) {
  Json json = Json::object();
  for (const auto& [name, value] : peaks.environment) json[name] = value;
  return json;
}

Json payload_of(const char* action) { return {{"schema", "oomscope.baseline/1"}, {"action", action}}; }

// "peak allocated", "forward, reserved".
std::string row_name(const PeakRow& row, Language language) {
  const std::string kind = say(row.is_reserved ? "baseline.reserved" : "baseline.allocated", language);
  if (row.name == "all") return say(baseline_phrase("row-all").with("kind", kind), language);
  return say(baseline_phrase("row-phase").with("phase", row.name).with("kind", kind), language);
}

Json row_json(const PeakRow& row) {
  return {{"name", row.name},
          {"of", row.is_reserved ? "reserved" : "allocated"},
          {"baseline_bytes", row.baseline_bytes},
          {"bytes", row.now_bytes},
          {"delta_bytes", row.delta()}};
}

std::string verdict(const BaselineEntry& baseline, const PeaksComparison& comparison, Language language) {
  const PeakRow* worst = nullptr;
  for (const PeakRow& row : comparison.rows) {
    if (row.is_regression && (worst == nullptr || row.delta() > worst->delta())) worst = &row;
  }
  if (worst == nullptr) {
    return say(baseline_phrase("no-worse").with("name", baseline.name).with("date", time_text(baseline.saved_at_s)),
               language);
  }
  return say(baseline_phrase("worse")
                 .with("name", baseline.name)
                 .with("date", time_text(baseline.saved_at_s))
                 .with("row", row_name(*worst, language))
                 .with("delta", format_bytes_signed(worst->delta()))
                 .with("bytes", format_bytes(worst->now_bytes)),
             language);
}

Table environment_table(const PeaksComparison& comparison, Language language) {
  Table table{.title = say("baseline.environment", language),
              .columns = {{.header = ""},
                          {.header = say("baseline.then", language), .may_shrink = true},
                          {.header = say("baseline.now", language), .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const EnvironmentDifference& each : comparison.environment) {
    const auto shown = [&](const std::string& text) { return text.empty() ? say("baseline.absent", language) : text; };
    table.rows.push_back(Row{.cells = {each.name, shown(each.baseline), shown(each.now)}, .style = Style::plain});
  }
  return table;
}

Table rows_table(const PeaksComparison& comparison, Language language) {
  Table table{.title = say("baseline.peaks", language),
              .columns = {{.header = ""},
                          {.header = say("baseline.then", language), .align = Align::right},
                          {.header = say("baseline.now", language), .align = Align::right},
                          {.header = say("baseline.change", language), .align = Align::right},
                          {.header = ""}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const PeakRow& row : comparison.rows) {
    table.rows.push_back(
        Row{.cells = {row_name(row, language), format_mib(row.baseline_bytes), format_mib(row.now_bytes),
                      format_mib_signed(row.delta()), row.is_regression ? say("baseline.regression", language) : ""},
            .style = row.is_regression ? Style::red : Style::plain});
  }
  return table;
}

void add_missing(const char* key, const std::vector<std::string>& names, Language language, Document& document) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  document.sections.push_back(
      {.body = Sentence{.text = say(baseline_phrase(key).with("phases", list), language)}, .joined = true});
}

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace

Document saved_document(const BaselineEntry& entry, Language language) {
  Document document;
  document.sections.push_back(
      {.body = Sentence{.text = say(baseline_phrase("saved")
                                        .with("name", entry.name)
                                        .with("project", entry.project)
                                        .with("allocated", format_bytes(entry.peaks.all.allocated_bytes))
                                        .with("reserved", format_bytes(entry.peaks.all.reserved_bytes)),
                                    language)}});
  document.payload = payload_of("save");
  document.payload.update(entry_json(entry));
  document.payload["environment"] = environment_json(entry.peaks);
  document.payload["regressions"] = Json::array();
  return document;
}

Document list_document(const std::vector<BaselineEntry>& entries, Language language) {
  Document document;
  document.payload = payload_of("list");
  document.payload["baselines"] = Json::array();
  document.payload["regressions"] = Json::array();
  if (entries.empty()) {
    document.sections.push_back({.body = Sentence{.text = say("baseline.list-empty", language)}});
    return document;
  }
  Table table{.title = "",
              .columns = {{.header = say("baseline.list-name", language)},
                          {.header = say("baseline.list-date", language)},
                          {.header = say("baseline.allocated", language), .align = Align::right},
                          {.header = say("baseline.reserved", language), .align = Align::right},
                          {.header = say("baseline.list-project", language), .may_shrink = true, .keep = Keep::tail}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const BaselineEntry& entry : entries) {
    table.rows.push_back(
        Row{.cells = {entry.name, time_text(entry.saved_at_s), format_mib(entry.peaks.all.allocated_bytes),
                      format_mib(entry.peaks.all.reserved_bytes), entry.project},
            .style = Style::plain});
    document.payload["baselines"].push_back(entry_json(entry));
  }
  document.sections.push_back({.body = std::move(table)});
  return document;
}

Document comparison_document(const BaselineEntry& baseline, const Peaks& now, const PeaksComparison& comparison,
                             Language language) {
  Document document;
  document.sections.push_back(
      {.body = Sentence{.text = verdict(baseline, comparison, language), .style = Style::bold}});
  if (comparison.environment.empty()) {
    document.sections.push_back({.body = Sentence{.text = say("baseline.same-environment", language)}, .joined = true});
  } else {
    document.sections.push_back({.body = environment_table(comparison, language)});
  }
  document.sections.push_back({.body = rows_table(comparison, language)});
  add_missing("only-then", comparison.only_baseline, language, document);
  add_missing("only-now", comparison.only_now, language, document);

  document.payload = payload_of("compare");
  document.payload["baseline"] = entry_json(baseline);
  document.payload["command"] = now.command;
  document.payload["environment"] = Json::array();
  for (const EnvironmentDifference& each : comparison.environment) {
    document.payload["environment"].push_back({{"name", each.name}, {"baseline", each.baseline}, {"now", each.now}});
  }
  document.payload["rows"] = Json::array();
  document.payload["regressions"] = Json::array();
  for (const PeakRow& row : comparison.rows) {
    document.payload["rows"].push_back(row_json(row));
    if (row.is_regression) document.payload["regressions"].push_back(row_json(row));
  }
  return document;
}

std::string comparison_junit(const BaselineEntry& baseline, const PeaksComparison& comparison) {
  const auto failures = std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                      [](const PeakRow& row) { return row.is_regression; });
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format("<testsuite name=\"oomscope baseline {}\" tests=\"{}\" failures=\"{}\">\n",
                     xml_text(baseline.name), comparison.rows.size(), failures);
  for (const PeakRow& row : comparison.rows) {
    const std::string name = xml_text(row_name(row, Language::english));
    if (!row.is_regression) {
      xml += fmt::format("  <testcase classname=\"memory\" name=\"{}\"/>\n", name);
      continue;
    }
    xml += fmt::format(
        "  <testcase classname=\"memory\" name=\"{}\">\n    <failure message=\"{}, was {} ({})\"/>\n  </testcase>\n",
        name, format_bytes(row.now_bytes), format_bytes(row.baseline_bytes), format_bytes_signed(row.delta()));
  }
  return xml + "</testsuite>\n";
}

}  // namespace oomscope
