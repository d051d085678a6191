#include "report/replay_document.h"

#include "base/bytes_text.h"
#include "report/why_document.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

Table pairs_table(std::string title, const std::vector<std::pair<std::string, std::string>>& rows) {
  Table table{.title = std::move(title),
              .columns = {{.header = ""}, {.header = "", .may_wrap = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const auto& [name, value] : rows) table.rows.push_back(Row{.cells = {name, value}, .style = Style::plain});
  return table;
}

void add_caveats(Document& document, const Caveats& caveats, Language language) {
  document.sections.push_back(Section{.body = caveat_list(caveats, language), .joined = false});
  document.payload["caveats"] = caveats_json(caveats);
}

std::string replay_word(std::string_view id, Language language) { return say("replay." + std::string(id), language); }

std::string range_text(int64_t bytes, int64_t low, int64_t high, bool from_mid_life, Language language) {
  if (low == high) return format_mib(bytes);
  return say(Phrase{.key = from_mid_life ? "replay.range-mid-life" : "replay.range"}
                 .with("bytes", format_mib(bytes))
                 .with("low", format_mib(low))
                 .with("high", format_mib(high)),
             language);
}

std::string peak_text(const OutcomeRange& outcome, bool from_mid_life, Language language) {
  return range_text(outcome.main.peak_reserved, outcome.peak_reserved_low, outcome.peak_reserved_high, from_mid_life,
                    language);
}

std::string failure_text(const Outcome& outcome, Language language) {
  const std::string bytes = format_bytes(outcome.refused_bytes);
  if (outcome.impossible) {
    return say(Phrase{.key = "replay.asserts"}.with("event", format_count(outcome.stopped_at_event)), language);
  }
  if (outcome.stopped_at_event == kNoEvent) {
    return say(Phrase{.key = "replay.fails-at-start"}.with("bytes", bytes), language);
  }
  return say(Phrase{.key = "replay.fails"}.with("event", format_count(outcome.stopped_at_event)).with("bytes", bytes),
             language);
}

std::string settings_text(const std::string& conf, Language language) {
  return conf.empty() ? replay_word("defaults", language) : conf;
}

std::string verdict_text(const Verdict& verdict, Language language) {
  Phrase proof;
  if (!verdict.proof.empty()) {
    proof = Phrase{.key = "replay.verdict-proof"}.with("proof", proof_name(verdict.proof, language));
  }
  return say(Phrase{.key = "replay.verdict"}
                 .with("event", format_count(verdict.event))
                 .with("verdict", replay_word(name_of(verdict.verdict), language))
                 .with("bytes", format_bytes(verdict.bytes))
                 .with("proof", std::move(proof)),
             language);
}

std::string outcome_text(const ReplayResult& result, const Verification& verification, Language language) {
  const Outcome& outcome = result.outcome.main;
  const bool unlimited = !result.cap_bytes && verification.refused_requests > 0;
  std::string text = outcome.completed ? replay_word(unlimited ? "completes-unlimited" : "completes", language)
                                       : failure_text(outcome, language);
  if (outcome.completed && outcome.library_tries > 0) {
    text += say(Phrase{.key = "replay.if-libraries-do-without"}.with("count", format_count(outcome.library_tries)),
                language);
  }
  if (result.outcome.completed_somewhere != result.outcome.completed_everywhere)
    text += replay_word(verification.timeline.starts_mid_life ? "start-decides" : "addresses-decide", language);
  return text;
}

}  // namespace

Document replay_document(const ReplayResult& result, const Verification& verification, Language language) {
  Document document;
  const Outcome& outcome = result.outcome.main;
  const std::string sentence = outcome_text(result, verification, language);
  document.sections.push_back(Section{
      .body = Sentence{.text = sentence, .style = outcome.completed ? Style::green : Style::red}, .joined = false});
  document.sections.push_back(Section{
      .body = pairs_table("", {{replay_word("settings", language), settings_text(result.conf, language)},
                               {replay_word("cap", language),
                                result.cap_bytes ? format_mib(*result.cap_bytes) : replay_word("none", language)},
                               {replay_word("peak-requested", language), format_mib(outcome.peak_requested)},
                               {replay_word("peak-allocated", language), format_mib(outcome.peak_allocated)},
                               {replay_word("peak-reserved", language),
                                peak_text(result.outcome, verification.timeline.starts_mid_life, language)},
                               {replay_word("driver-allocations", language), format_count(outcome.num_device_alloc)},
                               {replay_word("retries", language), format_count(outcome.num_alloc_retries)},
                               {replay_word("failed-requests", language), format_count(outcome.num_ooms)}}),
      .joined = true});
  for (const Verdict& verdict : result.verdicts) {
    document.sections.push_back(Section{.body = Sentence{.text = verdict_text(verdict, language)}, .joined = true});
  }
  document.sections.push_back(
      Section{.body = Sentence{.text = proof_line(verification, {}, language)}, .joined = true});
  document.payload = run_json(result.conf, result.cap_bytes, result.outcome);
  Json payload = {{"schema", "oomscope.replay/1"}};
  payload.update(document.payload);
  payload["verdicts"] = Json::array();
  for (const Verdict& verdict : result.verdicts) payload["verdicts"].push_back(verdict_json(verdict));
  document.payload = std::move(payload);
  add_caveats(document, result.caveats, language);
  return document;
}

Document sweep_document(const SweepResult& result, const Verification& verification, Language language) {
  Document document;
  if (!result.cap_bytes && verification.refused_requests > 0) {
    document.sections.push_back(
        Section{.body = Sentence{.text = replay_word("sweep-unlimited", language)}, .joined = false});
  }
  document.sections.push_back(Section{.body = runs_table(result.runs, result.runs.size(), language), .joined = false});
  const auto bound = [&](const std::string& id, int64_t bytes) {
    return std::pair(replay_word(id, language),
                     say(Phrase{.key = "replay." + id + "-means"}.with("bytes", format_mib(bytes)), language));
  };
  document.sections.push_back(
      Section{.body = pairs_table(replay_word("bounds", language),
                                  {bound("floor", result.floor_bytes), bound("page-floor", result.page_floor_bytes),
                                   bound("packing", result.packing_bytes)}),
              .joined = false});
  document.sections.push_back(
      Section{.body = Sentence{.text = proof_line(verification, {}, language)}, .joined = true});
  document.payload = {{"schema", "oomscope.sweep/1"},
                      {"cap_bytes", result.cap_bytes ? Json(*result.cap_bytes) : Json(nullptr)},
                      {"floor_bytes", result.floor_bytes},
                      {"page_floor_bytes", result.page_floor_bytes},
                      {"packing_bytes", result.packing_bytes},
                      {"runs", Json::array()}};
  for (const SweepRun& run : result.runs)
    document.payload["runs"].push_back(run_json(run.conf, result.cap_bytes, run.outcome));
  add_caveats(document, result.caveats, language);
  return document;
}

Document smallest_cap_document(const std::string& conf, const SmallestCap& found, const Caveats& caveats,
                               const Verification& verification, Language language) {
  Document document;
  const bool has_failing = found.largest_failing_bytes > 0;
  const std::string failing = has_failing ? format_mib(found.largest_failing_bytes) : replay_word("none", language);
  document.sections.push_back(
      Section{.body = Sentence{.text = say(Phrase{.key = has_failing ? "replay.smallest-cap" : "replay.every-cap"}
                                               .with("bytes", format_mib(found.smallest_cap_bytes))
                                               .with("failing", failing),
                                           language),
                               .style = Style::bold},
              .joined = false});
  std::vector<std::pair<std::string, std::string>> rows = {
      {replay_word("settings", language), settings_text(conf, language)},
      {replay_word("smallest", language), range_text(found.smallest_cap_bytes, found.low_bytes, found.high_bytes,
                                                     verification.timeline.starts_mid_life, language)},
      {replay_word("first-fit", language), format_mib(found.first_fit_bytes)},
      {replay_word("largest-failing", language), failing},
      {replay_word("replays", language), say(Phrase{.key = "replay.replays-means"}
                                                 .with("tried", format_count(found.tried))
                                                 .with("step", format_mib(found.step_bytes))
                                                 .with("above", format_mib(found.step_above_bytes)),
                                             language)}};
  document.sections.push_back(Section{.body = pairs_table("", rows), .joined = true});
  if (!found.monotone) {
    document.sections.push_back(
        Section{.body = Sentence{.text = replay_word("not-monotone", language)}, .joined = true});
  }
  document.sections.push_back(
      Section{.body = Sentence{.text = proof_line(verification, {}, language)}, .joined = true});
  document.payload = {{"schema", "oomscope.smallest-cap/1"},
                      {"conf", conf},
                      {"smallest_cap_bytes", found.smallest_cap_bytes},
                      {"smallest_cap_low_bytes", found.low_bytes},
                      {"smallest_cap_high_bytes", found.high_bytes},
                      {"first_fit_bytes", found.first_fit_bytes},
                      {"largest_failing_bytes", has_failing ? Json(found.largest_failing_bytes) : Json(nullptr)},
                      {"monotone", found.monotone},
                      {"tried", found.tried},
                      {"step_bytes", found.step_bytes},
                      {"step_above_bytes", found.step_above_bytes},
                      {"depends_on_driver_addresses", found.address_ties > 0}};
  add_caveats(document, caveats, language);
  return document;
}

}  // namespace oomscope
