#include "report/replay_document.h"

#include <fmt/format.h>

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

void add_caveats(Document& document, const Caveats& caveats) {
  document.sections.push_back(Section{.body = caveat_list(caveats), .joined = false});
  document.payload["caveats"] = caveats_json(caveats);
}

std::string range_text(const OutcomeRange& outcome) {
  if (outcome.peak_reserved_low == outcome.peak_reserved_high) return format_mib(outcome.main.peak_reserved);
  return fmt::format("{} ({} to {}, by where the driver puts segments)", format_mib(outcome.main.peak_reserved),
                     format_mib(outcome.peak_reserved_low), format_mib(outcome.peak_reserved_high));
}

}  // namespace

Document replay_document(const ReplayResult& result, const Verification& verification) {
  Document document;
  const Outcome& outcome = result.outcome.main;
  const bool unlimited = !result.cap_bytes && verification.refused_requests > 0;
  std::string sentence =
      outcome.completed && unlimited ? "Without a limit it completes; the job itself ran out: add --cap."
      : outcome.completed            ? "It completes."
                          : fmt::format("It fails at event {}: {} refused.", format_count(outcome.stopped_at_event),
                                        format_bytes(outcome.refused_bytes));
  if (result.outcome.completed_somewhere != result.outcome.completed_everywhere)
    sentence += " Where the driver puts segments decides it: on another card it may be otherwise.";
  document.sections.push_back(Section{
      .body = Sentence{.text = sentence, .style = outcome.completed ? Style::green : Style::red}, .joined = false});
  document.sections.push_back(
      Section{.body = pairs_table("", {{"settings", result.conf.empty() ? "(PyTorch's defaults)" : result.conf},
                                       {"cap", result.cap_bytes ? format_mib(*result.cap_bytes) : "none"},
                                       {"peak requested", format_mib(outcome.peak_requested)},
                                       {"peak allocated", format_mib(outcome.peak_allocated)},
                                       {"peak reserved", range_text(result.outcome)},
                                       {"driver allocations", format_count(outcome.num_device_alloc)},
                                       {"retries", format_count(outcome.num_alloc_retries)},
                                       {"failed requests", format_count(outcome.num_ooms)}}),
              .joined = true});
  for (const Verdict& verdict : result.verdicts) {
    document.sections.push_back(
        Section{.body = Sentence{.text = fmt::format("event {}: {} by {}{}", format_count(verdict.event),
                                                     name_of(verdict.verdict), format_bytes(verdict.bytes),
                                                     verdict.proof.empty() ? "" : ", proved by " + verdict.proof)},
                .joined = true});
  }
  document.sections.push_back(Section{.body = Sentence{.text = proof_line(verification)}, .joined = true});
  document.payload = run_json(result.conf, result.cap_bytes, result.outcome);
  Json payload = {{"schema", "oomscope.replay/1"}};
  payload.update(document.payload);
  payload["verdicts"] = Json::array();
  for (const Verdict& verdict : result.verdicts) payload["verdicts"].push_back(verdict_json(verdict));
  document.payload = std::move(payload);
  add_caveats(document, result.caveats);
  return document;
}

Document sweep_document(const SweepResult& result, const Verification& verification) {
  Document document;
  document.sections.push_back(Section{.body = runs_table(result.runs, result.runs.size()), .joined = false});
  document.sections.push_back(Section{
      .body = pairs_table(
          "What no setting can beat",
          {{"floor", format_mib(result.floor_bytes) + ": most requested bytes ever live at once"},
           {"page floor", format_mib(result.page_floor_bytes) + ": the same in whole pages"},
           {"packing", format_mib(result.packing_bytes) + ": an explicit placement, checked: this much suffices"}}),
      .joined = false});
  document.sections.push_back(Section{.body = Sentence{.text = proof_line(verification)}, .joined = true});
  document.payload = {{"schema", "oomscope.sweep/1"},
                      {"cap_bytes", result.cap_bytes ? Json(*result.cap_bytes) : Json(nullptr)},
                      {"floor_bytes", result.floor_bytes},
                      {"page_floor_bytes", result.page_floor_bytes},
                      {"packing_bytes", result.packing_bytes},
                      {"runs", Json::array()}};
  for (const SweepRun& run : result.runs)
    document.payload["runs"].push_back(run_json(run.conf, result.cap_bytes, run.outcome));
  add_caveats(document, result.caveats);
  return document;
}

Document smallest_cap_document(const std::string& conf, const SmallestCap& found, const Caveats& caveats,
                               const Verification& verification) {
  Document document;
  document.sections.push_back(Section{
      .body =
          Sentence{.text = fmt::format("It completes in {} and in every larger cap that was tried; {} still fails.",
                                       format_mib(found.smallest_cap_bytes), format_mib(found.largest_failing_bytes)),
                   .style = Style::bold},
      .joined = false});
  std::vector<std::pair<std::string, std::string>> rows = {
      {"settings", conf.empty() ? "(PyTorch's defaults)" : conf},
      {"smallest cap", format_mib(found.smallest_cap_bytes)},
      {"first fit", format_mib(found.first_fit_bytes)},
      {"largest failing", format_mib(found.largest_failing_bytes)},
      {"replays",
       fmt::format("{}, every {} around the edge", format_count(found.tried), format_mib(found.step_bytes))}};
  document.sections.push_back(Section{.body = pairs_table("", rows), .joined = true});
  if (!found.monotone) {
    document.sections.push_back(
        Section{.body = Sentence{.text = "Fitting is not monotone here: some caps between first fit and largest "
                                         "failing complete, some do not."},
                .joined = true});
  }
  document.sections.push_back(Section{.body = Sentence{.text = proof_line(verification)}, .joined = true});
  document.payload = {{"schema", "oomscope.smallest-cap/1"},
                      {"conf", conf},
                      {"smallest_cap_bytes", found.smallest_cap_bytes},
                      {"first_fit_bytes", found.first_fit_bytes},
                      {"largest_failing_bytes", found.largest_failing_bytes},
                      {"monotone", found.monotone},
                      {"tried", found.tried},
                      {"step_bytes", found.step_bytes},
                      {"depends_on_driver_addresses", found.address_ties > 0}};
  add_caveats(document, caveats);
  return document;
}

}  // namespace oomscope
