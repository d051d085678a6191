#include "report/findings_document.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/bytes_text.h"
#include "report/pasted_lines.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kEvidenceShown = 2;
constexpr size_t kOthersShown = 2;
constexpr size_t kChangesOfRecording = 3;

Section line(std::string text, Style style = Style::plain) {
  return Section{.body = Sentence{.text = std::move(text), .style = style, .indent_columns = 0}, .joined = true};
}

Json text_or_null(const Phrase& phrase) {
  return phrase.empty() ? Json(nullptr) : Json(say(phrase, Language::english));
}

Json predicted_json(const Predicted& predicted) {
  return {{"completed", or_null(predicted.completed)},
          {"peak_reserved", or_null(predicted.peak_reserved)},
          {"peak_reserved_low", or_null(predicted.peak_reserved_low)},
          {"peak_reserved_high", or_null(predicted.peak_reserved_high)},
          {"saved_bytes", or_null(predicted.saved_bytes)},
          {"premise", text_or_null(predicted.premise)},
          {"source", text_or_null(predicted.source)}};
}

Json change_json(const Change& change) {
  return {{"id", change.remedy},
          {"text", say(change.text, Language::english)},
          {"command", change.commands.empty() ? Json(nullptr) : Json(change.commands.front())},
          {"commands", change.commands},
          {"predicted", change.predicted ? predicted_json(*change.predicted) : Json(nullptr)}};
}

// The first of its snippets, line by line; where it is one line, those of the case's other places too. --json has all.
std::vector<std::string> shown_commands(const Change& change, Language language) {
  std::vector<std::string> lines;
  for (const std::string& command : change.commands) {
    const bool is_first = &command == &change.commands.front();
    const bool first_is_a_line = change.commands.front().find('\n') == std::string::npos;
    if (!is_first && (!first_is_a_line || command.find('\n') != std::string::npos)) break;
    for (std::string& line : pasted_lines(command, language)) lines.push_back("  " + line);
  }
  return lines;
}

Section joined(Sentence sentence) { return Section{.body = std::move(sentence), .joined = true}; }

// "What to do", numbered, each with the lines to paste.
void add_changes(const Finding& finding, size_t most, Language language, std::vector<Section>& sections) {
  if (finding.changes.empty()) return;
  sections.push_back(Section{.body = Sentence{.text = say("text.changes", language), .style = Style::bold}});
  for (size_t i = 0; i < std::min(most, finding.changes.size()); ++i) {
    const Change& change = finding.changes[i];
    const Phrase numbered =
        Phrase{.key = "text.change"}.with("number", std::to_string(i + 1)).with("text", change.text);
    std::string text = say(numbered, language);
    if (change.predicted) text += effect_text(*change.predicted, language);
    sections.push_back(joined({.text = std::move(text), .indent_columns = 2}));
    if (std::vector<std::string> lines = shown_commands(change, language); !lines.empty()) {
      sections.push_back(
          Section{.body = Lines{.title = "", .lines = std::move(lines), .style = Style::green}, .joined = true});
    }
  }
}

std::string claim_text(const std::string& id, Language language) {
  return say(Phrase{.key = "text.claim"}
                 .with("said", say("claim." + id + ".said", language))
                 .with("true", say("claim." + id + ".true", language)),
             language);
}

Json instant_json(const FindingInstant& instant) {
  return {{"event", or_null(instant.event)},
          {"failed", instant.failed},
          {"phase", std::string(name_of(instant.phase))},
          {"step", or_null(instant.step)},
          {"text", instant_text(instant, Language::english)}};
}

Phrase confidence_phrase(const Finding& finding) {
  return Phrase{.key = "confidence." + std::string(name_of(finding.confidence))};
}

}  // namespace

std::string effect_text(const Predicted& predicted, Language language) {
  const auto with_reserved = [&](std::string key) {
    if (!predicted.premise.key.empty()) key += "-if";
    return say(Phrase{.key = std::move(key)}
                   .with("premise", predicted.premise)
                   .with("reserved", format_mib(*predicted.peak_reserved)),
               language);
  };
  if (predicted.completed && !*predicted.completed) return say("finding.not-enough", language);
  if (predicted.peak_reserved) return with_reserved(predicted.completed ? "finding.completes" : "finding.peak");
  if (predicted.saved_bytes) {
    return say(Phrase{.key = "finding.saves"}.with("bytes", format_bytes(*predicted.saved_bytes)), language);
  }
  return "";
}

// first, second, third, 4th ... 11th ... 21st, 22nd, 23rd
std::string ordinal_key(int number) {
  constexpr std::array<std::string_view, 3> kInWords = {"instant.first", "instant.second", "instant.third"};
  if (number >= 1 && number <= 3) return std::string(kInWords[static_cast<size_t>(number) - 1]);
  const int unit = number % 100 / 10 == 1 ? 0 : number % 10;  // 11th, not 11st
  return unit >= 1 && unit <= 3 ? "instant.nth-" + std::to_string(unit) : "instant.nth";
}

std::string instant_text(const FindingInstant& instant, Language language) {
  // Nothing failed, and no step, pass or load is under way: that is how it always is.
  const bool steady = !instant.failed && instant.phase == Phase::unknown;
  const std::string phase = say(steady ? "instant.steady" : "instant." + std::string(name_of(instant.phase)), language);
  const bool in_step = instant.phase == Phase::forward || instant.phase == Phase::loss ||
                       instant.phase == Phase::backward || instant.phase == Phase::optimizer_step;
  if (!instant.step || !in_step) return phase;
  const std::string step =
      say(Phrase{.key = ordinal_key(*instant.step)}.with("n", std::to_string(*instant.step)), language);
  const char* key = instant.counted_from_recording ? "instant.of-recorded-step" : "instant.of-step";
  return say(Phrase{.key = key}.with("phase", phase).with("step", step), language);
}

std::string change_line(const Finding& finding, Language language) {
  // The settings have lines of their own.
  const auto first = std::find_if(finding.changes.begin(), finding.changes.end(),
                                  [](const Change& change) { return change.remedy != "allocator-setting"; });
  const bool settings_do =
      !finding.changes.empty() && first != finding.changes.begin() && finding.id == "fragmentation";
  if (first == finding.changes.end() || settings_do) return "";
  const Change& change = *first;
  const std::string text = say(Phrase{.key = "finding.change"}.with("text", {change.text}), language);
  return change.predicted ? text + effect_text(*change.predicted, language) : text;
}

std::vector<Section> finding_details(const std::vector<Finding>& findings, Language language) {
  std::vector<Section> sections;
  if (findings.empty()) return sections;
  const Finding& first = findings.front();
  if (first.failed_in && first.failed_in->event) {
    sections.push_back(line(say(Phrase{.key = "finding.failed-elsewhere"}
                                    .with("instant", instant_text(first.instant, language))
                                    .with("failed", instant_text(*first.failed_in, language))
                                    .with("event", format_count(*first.failed_in->event))
                                    .with("confidence", confidence_phrase(first))
                                    .with("because", first.because),
                                language)));
  } else if (first.instant.event) {
    const Phrase when = Phrase{.key = first.instant.failed ? "finding.failed-at" : "finding.seen-at"}
                            .with("instant", instant_text(first.instant, language))
                            .with("event", format_count(*first.instant.event))
                            .with("confidence", confidence_phrase(first))
                            .with("because", first.because);
    sections.push_back(line(say(when, language)));
  }
  for (size_t i = 0; i < std::min(first.evidence.size(), kEvidenceShown); ++i) {
    sections.push_back(line("- " + say(first.evidence[i].text, language)));
  }
  // What else may be behind it; what is true of each failure is a sentence of its own.
  size_t told = 0;
  for (size_t i = 1; i < findings.size() && told < kOthersShown; ++i) {
    const Finding& other = findings[i];
    if (other.confidence == Confidence::low || is_plain_cause(other.id)) continue;
    sections.push_back(line(say(Phrase{.key = "finding.also"}.with("claim", other.claim), language)));
    told += 1;
  }
  add_changes(first, kChangesOfRecording, language, sections);
  return sections;
}

std::vector<Section> log_finding_sections(const Finding& finding, size_t most_changes, Language language) {
  std::vector<Section> sections;
  sections.push_back(Section{.body = Sentence{.text = say(finding.claim, language), .style = Style::bold}});
  if (!finding.because.empty()) {
    sections.push_back(joined({.text = say(Phrase{.key = "text.because"}.with("because", finding.because), language)}));
  }
  for (const FindingEvidence& evidence : finding.evidence) {
    const bool is_said = evidence.text.key == "log.message";  // the report's head quotes it
    if (!is_said) sections.push_back(joined({.text = "- " + say(evidence.text, language)}));
  }
  if (!finding.surer.empty()) {
    sections.push_back(joined({.text = say(Phrase{.key = "text.surer"}.with("surer", finding.surer), language)}));
  }
  if (!finding.claims.empty()) {
    List claims{.title = say("text.claims", language), .entries = {}};
    for (const std::string& claim : finding.claims) claims.entries.push_back(claim_text(claim, language));
    sections.push_back(Section{.body = std::move(claims)});
  }
  add_changes(finding, most_changes, language, sections);
  return sections;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) {
    Json entry = {{"id", finding.id},
                  {"claim", say(finding.claim, Language::english)},
                  {"bytes", or_null(finding.bytes)},
                  {"confidence", std::string(name_of(finding.confidence))},
                  {"because", text_or_null(finding.because)},
                  {"surer", text_or_null(finding.surer)},
                  {"instant", instant_json(finding.instant)},
                  {"failed_in", nullptr}};
    if (finding.failed_in) entry["failed_in"] = instant_json(*finding.failed_in);
    if (!finding.failed_in && finding.instant.failed) entry["failed_in"] = entry["instant"];
    entry["evidence"] = Json::array();
    for (const FindingEvidence& evidence : finding.evidence) {
      entry["evidence"].push_back({{"text", say(evidence.text, Language::english)},
                                   {"event", or_null(evidence.event)},
                                   {"site", evidence.site.empty() ? Json(nullptr) : Json(evidence.site)},
                                   {"bytes", or_null(evidence.bytes)},
                                   {"log_line", or_null(evidence.log_line)}});
    }
    entry["change"] = nullptr;
    entry["predicted"] = nullptr;
    entry["changes"] = Json::array();
    for (const Change& change : finding.changes) entry["changes"].push_back(change_json(change));
    if (!finding.changes.empty()) {
      entry["change"] = entry["changes"].front();
      entry["change"].erase("predicted");
      entry["predicted"] = entry["changes"].front()["predicted"];
    }
    entry["claims"] = finding.claims;
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace oomscope
