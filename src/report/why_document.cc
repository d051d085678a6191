#include "report/why_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/findings_document.h"
#include "report/show_document.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFirstChanges = 3;
constexpr size_t kMostRuns = 12;

// A sentence or label of this document.
std::string why_word(std::string_view key, Language language) { return say("why." + std::string(key), language); }

Section joined(Section section) {
  section.joined = true;
  return section;
}

// Rows that hardly matter become one, so that the balance stays on the first screen; --json has them all.
Table balance_table(const Diagnosis& diagnosis, Language language) {
  Table table{.title = "",
              .columns = {{.header = ""},
                          {.header = "", .align = Align::right},
                          {.header = "", .may_shrink = true, .wraps = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  const int64_t little = diagnosis.instant.reserved_bytes / 50;
  int64_t others_bytes = 0;
  std::vector<Phrase> others;
  std::vector<Row> last;
  for (const BalanceRow& row : diagnosis.balance) {
    if (row.bytes && *row.bytes >= 0 && *row.bytes < little) {
      others_bytes += *row.bytes;
      others.push_back(row.name);
      continue;
    }
    const Row shown{
        .cells = {say(row.name, language), row.bytes ? format_mib(*row.bytes) : "?", say(row.source, language)},
        .style = Style::plain};
    (row.is_outside ? last : table.rows).push_back(shown);
  }
  if (!others.empty()) {
    const Phrase count = Phrase{.key = "balance.others"}.with("count", std::to_string(others.size()));
    const Phrase names = Phrase{.key = "balance.other-names"}.with("names", std::move(others));
    table.rows.push_back(
        Row{.cells = {say(count, language), format_mib(others_bytes), say(names, language)}, .style = Style::plain});
  }
  table.rows.insert(table.rows.end(), last.begin(), last.end());
  table.rows.push_back(Row{.cells = {say("balance.total", language), format_mib(diagnosis.balance_total_bytes),
                                     say("balance.sum", language)},
                           .style = Style::bold});
  return table;
}

// One number, or the range over where the driver may put segments.
std::string reserved_text(const OutcomeRange& outcome) {
  if (outcome.peak_reserved_low == outcome.peak_reserved_high) return format_mib(outcome.main.peak_reserved);
  return fmt::format("{}-{}", format_count(outcome.peak_reserved_low >> 20), format_mib(outcome.peak_reserved_high));
}

// Runs worth proposing: those that fit where something failed, else those that reserve less than the recording did.
std::vector<const SweepRun*> proposals(const Diagnosis& diagnosis, const Changes& changes) {
  std::vector<const SweepRun*> list;
  for (const SweepRun& run : changes.runs) {
    const Outcome& outcome = run.outcome.main;
    if (!outcome.completed) continue;
    const bool helps = diagnosis.instant.failed || outcome.peak_reserved < changes.recorded_reserved_bytes;
    if (!helps || run.settings == diagnosis.verification->config.settings) continue;
    // The same result by a longer line is no proposal.
    const bool repeats = std::any_of(list.begin(), list.end(), [&](const SweepRun* other) {
      return other->outcome.main.peak_reserved == outcome.peak_reserved &&
             run.conf.find(other->conf) != std::string::npos;
    });
    if (!repeats) list.push_back(&run);
  }
  return list;
}

std::string paste_line(const std::string& conf) {
  return conf.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF=" + conf;
}

std::string result_text(const SweepRun& run, const Changes& changes, Language language) {
  const std::string text = reserved_text(run.outcome);
  if (!changes.cap_bytes) return text;
  const char* key = run.outcome.completed_everywhere ? "why.fits" : "why.fits-if-addresses-allow";
  return say(Phrase{.key = key}.with("reserved", text), language);
}

// The line to paste and its replayed result; a line too long for 80 columns is left to the table below, unless there is
// no shorter one.
std::vector<std::string> change_lines(const Diagnosis& diagnosis, const Changes& changes, Language language) {
  constexpr int kRoom = 78;
  std::vector<std::string> lines;
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  for (const SweepRun* run : list) {
    const std::string line = paste_line(run->conf) + "  " + result_text(*run, changes, language);
    if (display_width(line) <= kRoom && lines.size() < kFirstChanges) lines.push_back(line);
  }
  if (lines.empty() && !list.empty()) {
    lines.push_back(paste_line(list.front()->conf));
    lines.push_back("  " + result_text(*list.front(), changes, language));
  }
  return lines;
}

Caveats all_caveats(const Diagnosis& diagnosis, const Changes& changes) {
  Caveats all = diagnosis.caveats;
  all.insert(all.end(), changes.caveats.begin(), changes.caveats.end());
  return all;
}

// As a shell takes it.
std::string quoted(const std::string& path) {
  const bool plain = path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/{}") ==
                     std::string::npos;
  if (plain) return path;
  std::string text = "'";
  for (char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string next_line(const Diagnosis& diagnosis, const std::string& path, Language language) {
  const Phrase next{.key = "why.next"};
  if (diagnosis.verification->timeline.trace().size_events() == 0) {
    return say(Phrase(next).with("command", Phrase{.key = "why.record-history"}), language);
  }
  const std::string file = path == "-" ? "SNAPSHOT" : quoted(path);
  const std::string command = diagnosis.instant.failed ? fmt::format("oomscope show {} --at oom", file)
                                                       : fmt::format("oomscope replay {} --smallest-cap", file);
  return say(Phrase(next).with("command", command), language);
}

Section bounds_section(const Diagnosis& diagnosis, const Changes& changes, Language language) {
  Table table{.title = why_word("bounds", language),
              .columns = {{.header = ""},
                          {.header = "", .align = Align::right},
                          {.header = "", .may_shrink = true, .wraps = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  auto add = [&](const std::string& key, int64_t bytes, const std::string& meaning) {
    table.rows.push_back(
        Row{.cells = {why_word("bound-" + key, language), format_mib(bytes), why_word(meaning, language)},
            .style = Style::plain});
  };
  add("floor", diagnosis.floor_bytes, "floor-means");
  add("pages", changes.page_floor_bytes, "pages-means");
  add("packing", changes.packing_bytes, "packing-means");
  if (changes.cap_bytes) {
    add("capacity", *changes.cap_bytes, changes.at_high_end ? "capacity-means-high-end" : "capacity-means");
  }
  return Section{.body = table, .joined = false};
}

std::string proof_name(const std::string& proof, Language language) {
  if (proof == kDefaultsProof) return why_word("defaults", language);
  if (proof == kPackingProof || proof == kFloorProof) return why_word("bound-" + proof, language);
  return proof;
}

Section verdict_section(const Changes& changes, Language language) {
  Table table{.title = why_word("failed-requests", language),
              .columns = {{.header = why_word("column-event", language), .align = Align::right},
                          {.header = why_word("column-verdict", language)},
                          {.header = why_word("column-by", language), .align = Align::right},
                          {.header = why_word("column-proof", language), .may_shrink = true, .wraps = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  constexpr size_t kMost = 10;
  const size_t first = changes.verdicts.size() > kMost ? changes.verdicts.size() - kMost : 0;
  if (first > 0)
    table.rows.push_back(
        Row{.cells = {say(Phrase{.key = "balance.others"}.with("count", std::to_string(first)), language)},
            .style = Style::dim});
  for (size_t i = first; i < changes.verdicts.size(); ++i) {
    const Verdict& verdict = changes.verdicts[i];
    table.rows.push_back(Row{
        .cells = {format_count(verdict.event), why_word(std::string("verdict-") + name_of(verdict.verdict), language),
                  format_mib(verdict.bytes), proof_name(verdict.proof, language)},
        .style = Style::plain});
  }
  return Section{.body = table, .joined = false};
}

Json balance_json(const Diagnosis& diagnosis) {
  Json rows = Json::array();
  for (const BalanceRow& row : diagnosis.balance) {
    rows.push_back({{"name", say(row.name, Language::english)},
                    {"bytes", row.bytes ? Json(*row.bytes) : Json(nullptr)},
                    {"source", say(row.source, Language::english)}});
  }
  return rows;
}

// What went wrong and what would have helped, as programs get it.
std::string english_sentence(const Diagnosis& diagnosis, const Changes& changes) {
  return say(diagnosis.sentence, Language::english) + " " + say(changes.sentence, Language::english);
}

// The setting that did best in the replays is a change too: the first where placement is the cause, else the last.
void add_setting(std::vector<Finding>& findings, const Diagnosis& diagnosis, const Changes& changes) {
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  if (list.empty() || findings.empty()) return;
  const SweepRun& run = *list.front();
  const Predicted predicted{
      .completed = run.outcome.main.completed,
      .peak_reserved = run.outcome.main.peak_reserved,
      .peak_reserved_low = run.outcome.peak_reserved_low,
      .peak_reserved_high = run.outcome.peak_reserved_high,
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
  if (named != all.end()) {
    *named = setting;
  } else {
    all.push_back(setting);
  }
}

Json numbers_json(const Diagnosis& diagnosis, const Changes& changes) {
  const Instant& instant = diagnosis.instant;
  const FreeSpace& space = diagnosis.free_space;
  Json numbers = {{"requested", instant.requested_bytes},
                  {"allocated", instant.allocated_bytes},
                  {"active", instant.active_bytes},
                  {"reserved", instant.reserved_bytes},
                  {"request", instant.request_bytes},
                  {"driver_request", instant.alloc_bytes},
                  {"device_free", instant.failed ? Json(instant.device_free_bytes) : Json(nullptr)},
                  {"missing", diagnosis.missing_bytes},
                  {"missing_at_most", diagnosis.missing_at_most_bytes},
                  {"floor_bytes", diagnosis.floor_bytes},
                  {"page_floor_bytes", changes.page_floor_bytes},
                  {"packing_bytes", changes.packing_bytes}};
  const Capacity& capacity = diagnosis.capacity;
  numbers["capacity"] =
      capacity.high_bytes == 0
          ? Json(nullptr)
          : Json{{"low", capacity.low_bytes}, {"high", capacity.high_bytes}, {"is_limit", capacity.is_limit}};
  numbers["free"] = {{"usable", space.usable_bytes},
                     {"usable_pieces", space.usable_pieces},
                     {"largest_usable", space.largest_usable_bytes},
                     {"oversize", space.oversize_bytes},
                     {"other_class", space.other_class_bytes},
                     {"other_stream", space.other_stream_bytes},
                     {"private_pool", space.private_pool_bytes}};
  return numbers;
}

}  // namespace

std::string proof_text(const Verification& verification, Language language) {
  return say(Phrase{.key = "why.proof"}
                 .with("events", format_count(static_cast<int64_t>(verification.timeline.trace().size_events())))
                 .with("mismatches", format_count(verification.replay->differences()))
                 .with("releases", Phrase{.key = "rules." + std::string(verification.config.rules.name)}),
             language);
}

Table runs_table(const std::vector<SweepRun>& runs, size_t most, std::optional<int64_t> cap_bytes, Language language) {
  Table table{.title = why_word("runs", language),
              .columns = {{.header = "PYTORCH_CUDA_ALLOC_CONF"},
                          {.header = why_word("column-fits", language)},
                          {.header = why_word("column-reserved", language), .align = Align::right},
                          {.header = why_word("column-retries", language), .align = Align::right, .may_drop = true},
                          {.header = why_word("column-allocated", language), .align = Align::right, .may_drop = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (size_t i = 0; i < std::min(runs.size(), most); ++i) {
    const Outcome& outcome = runs[i].outcome.main;
    table.rows.push_back(
        Row{.cells = {runs[i].conf.empty() ? why_word("default", language) : runs[i].conf,
                      why_word(outcome.completed ? "yes" : "no", language), reserved_text(runs[i].outcome),
                      format_count(outcome.num_alloc_retries), format_mib(outcome.peak_allocated)},
            .style = outcome.completed ? Style::plain : Style::dim});
  }
  if (runs.size() > most) {
    const int64_t fitting = std::count_if(runs.begin() + static_cast<std::ptrdiff_t>(most), runs.end(),
                                          [](const SweepRun& run) { return run.outcome.main.completed; });
    const Phrase others = Phrase{.key = "why.other-runs"}
                              .with("others", std::to_string(runs.size() - most))
                              .with("fitting", std::to_string(fitting))
                              .with("option", cap_bytes ? fmt::format(" --cap {}M", *cap_bytes >> 20) : "");
    table.rows.push_back(Row{.cells = {say(others, language)}, .style = Style::dim});
  }
  const bool any_range = std::any_of(runs.begin(), runs.end(), [](const SweepRun& run) {
    return run.outcome.peak_reserved_low != run.outcome.peak_reserved_high;
  });
  if (any_range) table.note = why_word("range-note", language);
  return table;
}

std::vector<Section> diagnosis_sections(const Diagnosis& diagnosis, const std::vector<Finding>& findings,
                                        Language language) {
  std::vector<Section> sections;
  const std::string sentence = say(diagnosis.sentence, language);
  if (findings.empty() || say(findings.front().claim, language) != sentence) {
    sections.push_back(Section{.body = Sentence{.text = sentence, .style = Style::bold}, .joined = !findings.empty()});
  }
  sections.push_back(joined(Section{.body = balance_table(diagnosis, language), .joined = true}));
  return sections;
}

std::vector<Section> changes_sections(const Diagnosis& diagnosis, const Changes& changes, const std::string& path,
                                      Language language) {
  std::vector<Section> sections;
  auto add_sentence = [&](std::string text, Style style) {
    sections.push_back(Section{.body = Sentence{.text = std::move(text), .style = style}, .joined = true});
  };
  if (!changes.sentence.empty()) add_sentence(say(changes.sentence, language), Style::bold);
  const std::vector<std::string> lines = change_lines(diagnosis, changes, language);
  if (!lines.empty()) {
    sections.push_back(Section{.body = Lines{.title = "", .lines = lines, .style = Style::green}, .joined = true});
  }
  add_sentence(proof_line(*diagnosis.verification, language), Style::plain);
  const Phrase trust =
      Phrase{.key = "why.trust-line"}
          .with("confidence", Phrase{.key = "confidence." + std::string(name_of(diagnosis.confidence))})
          .with("trust", diagnosis.trust);
  add_sentence(say(trust, language), Style::plain);
  sections.push_back(
      Section{.body = Lines{.title = "", .lines = {next_line(diagnosis, path, language)}}, .joined = true});
  if (!changes.runs.empty()) {
    sections.push_back(Section{.body = runs_table(changes.runs, kMostRuns, changes.cap_bytes, language)});
    sections.push_back(bounds_section(diagnosis, changes, language));
    if (!changes.verdicts.empty()) sections.push_back(verdict_section(changes, language));
  }
  sections.push_back(Section{.body = caveat_list(all_caveats(diagnosis, changes), language)});
  return sections;
}

std::string proof_line(const Verification& verification, Language language) {
  return say(Phrase{.key = "why.proof-line"}.with("proof", proof_text(verification, language)), language);
}

Json run_json(const std::string& conf, std::optional<int64_t> cap_bytes, const OutcomeRange& range) {
  const Outcome& outcome = range.main;
  return {{"conf", conf},
          {"cap_bytes", cap_bytes ? Json(*cap_bytes) : Json(nullptr)},
          {"completed", outcome.completed},
          {"peak_requested", outcome.peak_requested},
          {"peak_allocated", outcome.peak_allocated},
          {"peak_reserved", outcome.peak_reserved},
          {"peak_reserved_low", range.peak_reserved_low},
          {"peak_reserved_high", range.peak_reserved_high},
          {"num_device_alloc", outcome.num_device_alloc},
          {"num_alloc_retries", outcome.num_alloc_retries},
          {"num_ooms", outcome.num_ooms},
          {"library_tries", outcome.library_tries},
          {"verdicts", Json::array()}};
}

Json verdict_json(const Verdict& verdict) {
  return {{"event", verdict.event},
          {"verdict", name_of(verdict.verdict)},
          {"bytes", verdict.bytes},
          {"proof", verdict.proof.empty() ? Json(nullptr) : Json(verdict.proof)}};
}

Json why_payload(const Diagnosis& diagnosis, const Changes& changes, std::vector<Finding> findings,
                 const std::string& path) {
  const Verification& verification = *diagnosis.verification;
  Json payload = {{"schema", "oomscope.why/1"},
                  {"file", path},
                  {"kind", std::string(name_of(diagnosis.kind))},
                  {"also", Json::array()}};
  for (Kind kind : diagnosis.also) payload["also"].push_back(std::string(name_of(kind)));
  payload["confidence"] = std::string(name_of(diagnosis.confidence));
  payload["phase"] = findings.empty() ? Json(nullptr) : Json(std::string(name_of(findings.front().instant.phase)));
  payload["sentence"] = english_sentence(diagnosis, changes);
  payload["numbers"] = numbers_json(diagnosis, changes);
  payload["balance"] = balance_json(diagnosis);
  payload["balance_total"] = diagnosis.balance_total_bytes;
  payload["proof"] = {{"rules", std::string(verification.config.rules.name)},
                      {"events", verification.timeline.trace().size_events()},
                      {"alloc_total", verification.replay->counts().alloc_total},
                      {"alloc_exact", verification.replay->counts().alloc_exact},
                      {"differences", verification.replay->differences()}};
  add_setting(findings, diagnosis, changes);
  payload["findings"] = findings_json(findings);
  payload["runs"] = Json::array();
  for (const SweepRun& run : changes.runs)
    payload["runs"].push_back(run_json(run.conf, changes.cap_bytes, run.outcome));
  payload["verdicts"] = Json::array();
  for (const Verdict& verdict : changes.verdicts) payload["verdicts"].push_back(verdict_json(verdict));
  payload["caveats"] = caveats_json(all_caveats(diagnosis, changes));
  return payload;
}

}  // namespace oomscope
