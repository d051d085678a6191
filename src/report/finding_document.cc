#include "report/finding_document.h"

#include <algorithm>
#include <string_view>

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json predicted_json(const std::optional<Predicted>& predicted) {
  if (!predicted) return nullptr;
  return {{"completed", optional_json(predicted->completed)},
          {"peak_reserved", optional_json(predicted->peak_reserved)},
          {"peak_reserved_low", optional_json(predicted->peak_reserved_low)},
          {"peak_reserved_high", optional_json(predicted->peak_reserved_high)},
          {"saved_bytes", optional_json(predicted->saved_bytes)},
          {"source", say(predicted->source, Language::english)}};
}

Json change_json(const Change& change) {
  return {{"id", change.remedy},
          {"text", say(change.text, Language::english)},
          {"command", change.commands.empty() ? Json(nullptr) : Json(change.commands.front())},
          {"commands", change.commands}};
}

// The first of its snippets, line by line; --json has all.
std::vector<std::string> pasted_lines(const Change& change) {
  std::vector<std::string> lines;
  if (change.commands.empty()) return lines;
  std::string_view rest = change.commands.front();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back("  " + std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

Section joined(Sentence sentence) { return Section{.body = std::move(sentence), .joined = true}; }

}  // namespace

std::vector<Section> finding_sections(const Finding& finding, size_t most_changes, Language language) {
  std::vector<Section> sections;
  sections.push_back(Section{.body = Sentence{.text = say(finding.claim, language), .style = Style::bold}});
  if (!finding.because.empty()) {
    sections.push_back(joined({.text = say(Phrase{.key = "text.because"}.with("because", finding.because), language)}));
  }
  if (!finding.surer.empty()) {
    sections.push_back(joined({.text = say(Phrase{.key = "text.surer"}.with("surer", finding.surer), language)}));
  }
  if (!finding.claims.empty()) {
    List claims{.title = say("text.claims", language), .entries = {}};
    for (const std::string& claim : finding.claims) claims.entries.push_back(say("claim." + claim + ".true", language));
    sections.push_back(Section{.body = std::move(claims)});
  }
  if (finding.changes.empty()) return sections;
  sections.push_back(Section{.body = Sentence{.text = say("text.changes", language), .style = Style::bold}});
  for (size_t i = 0; i < std::min(most_changes, finding.changes.size()); ++i) {
    const Change& change = finding.changes[i];
    const Phrase numbered =
        Phrase{.key = "text.change"}.with("number", std::to_string(i + 1)).with("text", change.text);
    sections.push_back(joined({.text = say(numbered, language), .indent_columns = 2}));
    if (std::vector<std::string> lines = pasted_lines(change); !lines.empty()) {
      sections.push_back(
          Section{.body = Lines{.title = "", .lines = std::move(lines), .style = Style::green}, .joined = true});
    }
  }
  return sections;
}

Json finding_json(const Finding& finding) {
  Json json = {{"id", finding.id},
               {"claim", say(finding.claim, Language::english)},
               {"bytes", optional_json(finding.bytes)},
               {"confidence", std::string(name_of(finding.confidence))},
               {"because", say(finding.because, Language::english)},
               {"surer", say(finding.surer, Language::english)},
               {"instant",
                {{"phase", std::string(name_of(finding.instant.phase))},
                 {"event", optional_json(finding.instant.event)},
                 {"step", optional_json(finding.instant.step)},
                 {"failed", finding.instant.failed}}},
               {"evidence", Json::array()}};
  for (const FindingEvidence& evidence : finding.evidence) {
    json["evidence"].push_back({{"text", say(evidence.text, Language::english)},
                                {"event", optional_json(evidence.event)},
                                {"site", evidence.site},
                                {"bytes", optional_json(evidence.bytes)},
                                {"log_line", optional_json(evidence.log_line)}});
  }
  json["change"] = finding.changes.empty() ? Json(nullptr) : change_json(finding.changes.front());
  json["predicted"] = finding.changes.empty() ? Json(nullptr) : predicted_json(finding.changes.front().predicted);
  json["changes"] = Json::array();
  for (const Change& change : finding.changes) {
    Json each = change_json(change);
    each["predicted"] = predicted_json(change.predicted);
    json["changes"].push_back(std::move(each));
  }
  json["claims"] = finding.claims;
  return json;
}

}  // namespace oomscope
