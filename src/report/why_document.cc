#include "report/why_document.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "remedies/remedy.h"
#include "report/findings_document.h"
#include "report/measures_document.h"
#include "report/proposed_changes.h"
#include "report/show_document.h"
#include "types/recording_call.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

// The first screen answers: sentence, balance, settings, proof, trust, next.
constexpr size_t kFirstScreenLines = 15;
constexpr int kScreenColumns = 80;

// A sentence or label of this document.
std::string why_word(std::string_view key, Language language) { return say("why." + std::string(key), language); }

Section joined(Section section) {
  section.joined = true;
  return section;
}

// The smallest rows become one, so that the balance stays on the first screen: those below a per cent, and as many more
// as `most_rows` lines demand. --json has them all.
std::vector<bool> folded_rows(const Diagnosis& diagnosis, size_t most_rows) {
  std::vector<size_t> order;  // the smallest first
  for (size_t i = 0; i < diagnosis.balance.size(); ++i) {
    if (!diagnosis.balance[i].is_outside) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return *diagnosis.balance[a].bytes < *diagnosis.balance[b].bytes; });
  std::vector<bool> folded(diagnosis.balance.size(), false);
  const auto is_little = [&](size_t i) { return *diagnosis.balance[i].bytes < diagnosis.instant.reserved_bytes / 100; };
  size_t count = 0;
  while (count < order.size() && is_little(order[count])) ++count;
  // One line takes those folded, one the total.
  const size_t rows = diagnosis.balance.size() + 1;
  if (count < 2) count = 0;
  if (rows - count + (count > 0 ? 1 : 0) > most_rows) count = std::min(order.size(), rows + 1 - most_rows);
  if (order.size() > 0 && count == order.size()) count -= 1;
  if (count < 2) count = 0;
  for (size_t k = 0; k < count; ++k) folded[order[k]] = true;
  return folded;
}

Table balance_table(const Diagnosis& diagnosis, size_t most_rows, Language language) {
  Table table{.title = "",
              .columns = {{.header = ""}, {.header = "", .align = Align::right}, {.header = "", .may_wrap = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  const std::vector<bool> folded = folded_rows(diagnosis, most_rows);
  std::vector<int64_t> known;  // as they are shown: the folded ones together, and last
  for (size_t i = 0; i < diagnosis.balance.size(); ++i) {
    if (!folded[i] && diagnosis.balance[i].bytes) known.push_back(*diagnosis.balance[i].bytes);
  }
  known.push_back(diagnosis.balance_total_bytes - std::accumulate(known.begin(), known.end(), int64_t{0}));
  const std::vector<int64_t> sizes = mib_adding_up(known);
  size_t next_size = 0;
  int64_t others = 0;
  Phrase others_source;
  bool has_unknown = false;
  std::vector<Row> last;
  for (size_t i = 0; i < diagnosis.balance.size(); ++i) {
    const BalanceRow& row = diagnosis.balance[i];
    has_unknown |= !row.bytes;
    if (folded[i]) {
      others += 1;
      if (others_source.empty() || row.source.values.empty()) others_source = row.source;
      continue;
    }
    const Row shown{
        .cells = {say(row.name, language), row.bytes ? format_mib(sizes[next_size++]) : "?", say(row.source, language)},
        .style = Style::plain};
    (row.is_outside ? last : table.rows).push_back(shown);
  }
  if (others > 0) {
    const Phrase count = Phrase{.key = "balance.others"}.with("count", std::to_string(others));
    table.rows.push_back(Row{.cells = {say(count, language), format_mib(sizes.back()), say(others_source, language)}});
  }
  table.rows.insert(table.rows.end(), last.begin(), last.end());
  const char* sum = has_unknown ? "balance.sum-of-known" : "balance.sum";
  table.rows.push_back(
      Row{.cells = {say("balance.total", language), format_mib(diagnosis.balance_total_bytes), say(sum, language)},
          .style = Style::bold});
  return table;
}

// One number, or the range over where the driver may put segments; ~ where that hung on addresses and was not replayed.
std::string reserved_text(const OutcomeRange& outcome) {
  if (!outcome.looked_for) return "~" + format_mib(outcome.main.peak_reserved);
  if (outcome.peak_reserved_low == outcome.peak_reserved_high) return format_mib(outcome.main.peak_reserved);
  return fmt::format("{}-{}", format_count(outcome.peak_reserved_low >> 20), format_mib(outcome.peak_reserved_high));
}

std::string result_text(const SweepRun& run, const Changes& changes, Language language) {
  const std::string text = reserved_text(run.outcome);
  if (!changes.cap_bytes) return text;
  const char* key = changes.at_high_end                ? "why.fits-if-limit-allows"
                    : run.outcome.completed_everywhere ? "why.fits"
                                                       : "why.fits-if-addresses-allow";
  return say(Phrase{.key = key}.with("reserved", text), language);
}

// At most `most` lines: the best setting first, each with its replayed result, on a line of its own where both are too
// long for one. A line that has no room is left to the table below.
std::vector<std::string> setting_lines(const Diagnosis& diagnosis, const Changes& changes, size_t most,
                                       Language language) {
  constexpr int kRoom = kScreenColumns - 2;
  std::vector<std::string> lines;
  size_t shown = 0;
  for (const SweepRun* run : proposals(diagnosis, changes)) {
    if (shown == kMostProposals || lines.size() >= most) break;
    const std::string paste = paste_line(run->conf);
    const std::string result = result_text(*run, changes, language);
    if (display_width(paste + "  " + result) <= kRoom) {
      lines.push_back(paste + "  " + result);
    } else if (lines.size() + 2 <= most) {
      lines.push_back(paste);
      lines.push_back("  " + result);
    } else if (lines.empty()) {  // where there is room for one line, the bytes alone
      const std::string brief = paste + "  " + reserved_text(run->outcome);
      lines.push_back(display_width(brief) <= kRoom ? brief : paste);
    } else {
      continue;
    }
    shown += 1;
  }
  return lines;
}

// The beginning of a text that is written out below, whole words of it.
std::string one_line(const std::string& text) {
  if (display_width(text) <= kScreenColumns) return text;
  std::string line = shorten(text, kScreenColumns, Keep::head, TerminalOptions{});
  const size_t space = line.rfind(' ');
  return space == std::string::npos ? line : line.substr(0, space) + " ..";
}

// Lines that a section takes on the first screen.
size_t height(const Section& section) {
  const std::string text = render_section(section, TerminalOptions{.width_columns = kScreenColumns});
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

size_t height(const std::vector<Section>& sections) {
  size_t lines = 0;
  for (const Section& section : sections) lines += height(section);
  return lines;
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

std::string file_word(const std::string& path) { return path == "-" ? "SNAPSHOT" : quoted(path); }

// A command is never wrapped; what to record next time is a sentence.
Section next_section(const Diagnosis& diagnosis, const std::string& path, Language language) {
  const Phrase next{.key = "why.next"};
  if (diagnosis.verification->timeline.trace().size_events() <= 1) {  // a ring of one entry is no history either
    const std::string call = recording_call(*diagnosis.verification->timeline.snapshot);
    const Phrase record = Phrase(next).with("command", Phrase{.key = "why.record-history"}.with("call", call));
    return joined(Section{.body = Sentence{.text = say(record, language), .indent_columns = 2}});
  }
  std::string file = file_word(path);
  const Timeline& timeline = diagnosis.verification->timeline;
  if (devices_of(*timeline.snapshot).size() > 1) file += fmt::format(" --device {}", timeline.device);
  const std::string command = diagnosis.instant.failed ? fmt::format("oomscope show {} --at oom", file)
                                                       : fmt::format("oomscope replay {} --smallest-cap", file);
  return joined(Section{.body = Lines{.title = "", .lines = {say(Phrase(next).with("command", command), language)}}});
}

Section bounds_section(const Diagnosis& diagnosis, const Changes& changes, Language language) {
  Table table{.title = why_word("bounds", language),
              .columns = {{.header = ""}, {.header = "", .align = Align::right}, {.header = "", .may_wrap = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  auto add = [&](const std::string& key, int64_t bytes, const std::string& meaning) {
    table.rows.push_back(
        Row{.cells = {why_word("bound-" + key, language), format_mib(bytes), why_word(meaning, language)},
            .style = Style::plain,
            .exact_bytes = {kNoBytes, bytes}});
  };
  const bool waits = diagnosis.instant.active_bytes > diagnosis.instant.allocated_bytes;
  add("floor", diagnosis.floor_bytes, waits ? "floor-means-waiting" : "floor-means");
  add("pages", changes.page_floor_bytes, "pages-means");
  add("packing", changes.packing_bytes, "packing-means");
  if (changes.cap_bytes) {
    add("capacity", *changes.cap_bytes, changes.at_high_end ? "capacity-means-high-end" : "capacity-means");
  }
  return Section{.body = table, .joined = false};
}

Section verdict_section(const Changes& changes, Language language) {
  Table table{.title = why_word("failed-requests", language),
              .columns = {{.header = why_word("column-event", language), .align = Align::right},
                          {.header = why_word("column-verdict", language)},
                          {.header = why_word("column-by", language), .align = Align::right},
                          {.header = why_word("column-proof", language), .may_wrap = true}},
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

// The measures that no change of a finding has answered already: one remedy, one answer.
std::vector<MeasureOutcome> other_measures(const std::vector<Finding>& findings, const Changes& changes) {
  std::vector<MeasureOutcome> others;
  for (const MeasureOutcome& outcome : changes.measures) {
    const bool is_answered = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return std::any_of(finding.changes.begin(), finding.changes.end(), [&](const Change& change) {
        return change.remedy == outcome.measure.remedy && was_tried(change);
      });
    });
    if (!is_answered) others.push_back(outcome);
  }
  return others;
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
                     {"private_pool", space.private_pool_bytes},
                     {"default_pool", space.default_pool_bytes}};
  return numbers;
}

// The minor version: "2.13" is newer than "2.9".
int minor_of(const RuleSet& rules) {
  const size_t dot = rules.last_release.find('.');
  return std::stoi(std::string(rules.last_release.substr(dot + 1)));
}

// Releases of which all rule sets between the first and the last are among `rules`: "1.13 to 2.11 and 2.13 to 2.15".
// torch-2.12-custom is of no release of its own.
std::string releases_text(const std::vector<RuleSet>& rules, Language language) {
  std::vector<RuleSet> sets(all_rule_sets().begin(), all_rule_sets().end());
  std::erase_if(sets, [](const RuleSet& set) { return set.tie_break == TieBreak::custom_block_counter; });
  std::sort(sets.begin(), sets.end(), [](const RuleSet& a, const RuleSet& b) { return minor_of(a) < minor_of(b); });
  std::string text;
  for (size_t i = 0; i < sets.size(); ++i) {
    const auto is_alike = [&](const RuleSet& set) {
      return std::any_of(rules.begin(), rules.end(), [&](const RuleSet& other) { return other.name == set.name; });
    };
    if (!is_alike(sets[i])) continue;
    const RuleSet& first = sets[i];
    while (i + 1 < sets.size() && is_alike(sets[i + 1])) ++i;
    if (!text.empty()) text += why_word("rules-and", language);
    const bool is_one = first.first_release == sets[i].last_release;
    text += is_one ? std::string(first.first_release)
                   : say(Phrase{.key = "why.rules-from-to"}
                             .with("first", std::string(first.first_release))
                             .with("last", std::string(sets[i].last_release)),
                         language);
  }
  return text;
}

// The best runs, with what limits their use; the others are a command away.
Table sweep_table(const Diagnosis& diagnosis, const Changes& changes, const std::string& path, Language language) {
  Table table = runs_table(changes.runs, kMostRuns, language);
  bool any_unknown = false;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (changes.accepted[i]) continue;
    any_unknown = true;
    table.rows[i].cells.front() += " " + say("why.not-in-all", language);
  }
  std::string note = any_unknown ? say("why.not-in-all-note", language) : "";
  const auto add_note = [&](const std::string& text) { note += (note.empty() || text.empty() ? "" : "\n") + text; };
  if (changes.at_high_end) {
    add_note(say(Phrase{.key = "why.high-end-note"}.with("high", format_mib(diagnosis.capacity.high_bytes)), language));
  }
  add_note(table.note);
  table.note = note;
  if (changes.runs.size() <= kMostRuns) return table;
  const int64_t fitting =
      std::count_if(changes.runs.begin() + static_cast<std::ptrdiff_t>(kMostRuns), changes.runs.end(),
                    [](const SweepRun& run) { return run.outcome.main.completed; });
  const Phrase others = Phrase{.key = "why.other-runs"}
                            .with("others", std::to_string(changes.runs.size() - kMostRuns))
                            .with("fitting", std::to_string(fitting));
  const std::string cap = changes.cap_bytes ? fmt::format(" --cap {}M", *changes.cap_bytes >> 20) : "";
  add_note(
      say(Phrase(others).with("command", fmt::format("oomscope replay {} --sweep{}", file_word(path), cap)), language));
  return table;
}

// What the first screen had no room for.
void add_details(const Diagnosis& diagnosis, const std::vector<Finding>& findings, Language language,
                 std::vector<Section>& sections) {
  std::vector<Section> details = finding_details(findings, language);
  const std::string sentence = say(diagnosis.sentence, language);
  if (!findings.empty() && say(findings.front().claim, language) != sentence) {
    details.insert(details.begin(), joined(Section{.body = Sentence{.text = sentence}}));
  }
  if (!details.empty()) details.front().joined = false;
  std::move(details.begin(), details.end(), std::back_inserter(sections));
}

}  // namespace

std::string proof_name(const std::string& proof, Language language) {
  if (proof == kDefaultsProof) return why_word("defaults", language);
  if (proof == kPackingProof || proof == kFloorProof) return why_word("bound-" + proof, language);
  return proof;
}

Caveats all_caveats(const Diagnosis& diagnosis, const Changes& changes) {
  Caveats all = diagnosis.caveats;
  all.insert(all.end(), changes.caveats.begin(), changes.caveats.end());
  return all;
}

std::string outlook_text(const Changes& changes, const std::vector<Finding>& findings, Language language) {
  constexpr std::array<std::string_view, 3> kServes = {"why.avoidable", "why.open", "why.open-but-placement"};
  const bool serves = std::find(kServes.begin(), kServes.end(), changes.sentence.key) != kServes.end();
  const bool grows =
      !findings.empty() && (findings.front().id == "graph-kept" || findings.front().id == "tensors-kept");
  if (!serves || !grows) return say(changes.sentence, language);
  return say(Phrase{.key = "why.only-later"}.with("outlook", {changes.sentence}), language);
}

std::string proof_text(const Verification& verification, const std::vector<RuleSet>& rules, Language language) {
  const size_t events = verification.timeline.trace().size_events();
  const ReplayCounts& counts = verification.replay->counts();
  if (counts.alloc_total + counts.driver_total == 0) return say("why.no-proof", language);
  const Phrase releases{.key = "rules." + std::string(verification.config.rules.name)};
  Phrase named = Phrase{.key = "why.rules-of"}.with("releases", releases);
  if (const std::string alike = releases_text(rules, language); rules.size() > 1 && !alike.empty()) {
    named = Phrase{.key = "why.rules-alike"}.with("releases", alike);
  }
  return say(Phrase{.key = "why.proof"}
                 .with("count", format_count(static_cast<int64_t>(events)))
                 .with("mismatches", format_count(verification.replay->differences()))
                 .with("rules", std::move(named)),
             language);
}

Table runs_table(const std::vector<SweepRun>& runs, size_t most, Language language) {
  Table table{.title = why_word("runs", language),
              .columns = {{.header = "PYTORCH_CUDA_ALLOC_CONF", .may_wrap = true},
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
            .style = outcome.completed ? Style::plain : Style::dim,
            .exact_bytes = {kNoBytes, kNoBytes, outcome.peak_reserved, kNoBytes, outcome.peak_allocated}});
  }
  const bool any_range = std::any_of(runs.begin(), runs.end(), [](const SweepRun& run) {
    return run.outcome.peak_reserved_low != run.outcome.peak_reserved_high;
  });
  if (any_range) table.note = why_word("range-note", language);
  return table;
}

std::vector<Section> diagnosis_sections(const Diagnosis& diagnosis, const std::vector<Finding>& findings,
                                        Language language) {
  const Phrase& sentence = findings.empty() ? diagnosis.sentence : findings.front().claim;
  std::vector<Section> sections;
  sections.push_back(Section{.body = Sentence{.text = say(sentence, language), .style = Style::bold}});
  for (const Caveat& caveat : diagnosis.caveats) {
    if (caveat.code != "cap-contradicted") continue;
    sections.push_back(joined(Section{.body = Sentence{.text = caveat_list({caveat}, language).entries.front()}}));
  }
  // Settings and what they bring, proof, trust, next.
  constexpr size_t kBelow = 7;
  const size_t change = findings.empty() || change_line(findings.front(), language).empty() ? 0 : 1;
  const size_t room = kFirstScreenLines - std::min(kFirstScreenLines, height(sections) + kBelow + change);
  sections.push_back(joined(Section{.body = balance_table(diagnosis, room, language)}));
  return sections;
}

std::vector<Section> changes_sections(const Diagnosis& diagnosis, const Changes& changes,
                                      const std::vector<Finding>& found, const std::string& path, Language language) {
  std::vector<Finding> findings = found;
  add_measures(findings, changes);
  std::vector<Section> end;
  end.push_back(
      joined(Section{.body = Sentence{.text = proof_line(*diagnosis.verification, changes.rules, language)}}));
  end.push_back(joined(Section{.body = Sentence{.text = trust_line(diagnosis, language)}}));
  end.push_back(next_section(diagnosis, path, language));

  std::vector<Section> sections;
  if (!changes.sentence.empty()) {
    sections.push_back(
        joined(Section{.body = Sentence{.text = outlook_text(changes, findings, language), .style = Style::bold}}));
  }
  const size_t taken = height(diagnosis_sections(diagnosis, findings, language)) + height(sections) + height(end);
  size_t room = kFirstScreenLines - std::min(kFirstScreenLines, taken);
  const std::string change = findings.empty() ? "" : change_line(findings.front(), language);
  const size_t settings = setting_lines(diagnosis, changes, 1, language).size();
  if (!change.empty() && room > settings) {
    sections.insert(sections.begin(),
                    joined(Section{.body = Sentence{.text = one_line(change), .style = Style::green}}));
    room -= 1;
  }
  std::vector<std::string> lines = setting_lines(diagnosis, changes, std::max<size_t>(room, 1), language);
  if (!lines.empty()) {
    sections.push_back(joined(Section{.body = Lines{.title = "", .lines = std::move(lines), .style = Style::green}}));
  }
  std::move(end.begin(), end.end(), std::back_inserter(sections));
  std::vector<Section> details = detail_sections(diagnosis, changes, found, path, language);
  std::move(details.begin(), details.end(), std::back_inserter(sections));
  return sections;
}

std::vector<Section> detail_sections(const Diagnosis& diagnosis, const Changes& changes,
                                     const std::vector<Finding>& found, const std::string& path, Language language) {
  std::vector<Section> sections;
  std::vector<Finding> findings = found;
  add_measures(findings, changes);
  add_details(diagnosis, findings, language, sections);
  if (!changes.runs.empty()) {
    sections.push_back(Section{.body = sweep_table(diagnosis, changes, path, language)});
    sections.push_back(bounds_section(diagnosis, changes, language));
    if (!changes.verdicts.empty()) sections.push_back(verdict_section(changes, language));
  }
  for (Section& section : measures_sections(other_measures(found, changes), changes.measures_have_cap, language)) {
    sections.push_back(std::move(section));
  }
  sections.push_back(Section{.body = caveat_list(all_caveats(diagnosis, changes), language)});
  return sections;
}

std::string proof_line(const Verification& verification, const std::vector<RuleSet>& rules, Language language) {
  return say(Phrase{.key = "why.proof-line"}.with("proof", proof_text(verification, rules, language)), language);
}

std::string trust_line(const Diagnosis& diagnosis, Language language) {
  const Phrase confidence{.key = "confidence." + std::string(name_of(diagnosis.confidence))};
  return say(Phrase{.key = "why.trust-line"}.with("confidence", confidence).with("trust", diagnosis.trust), language);
}

Json run_json(const std::string& conf, std::optional<int64_t> cap_bytes, const OutcomeRange& range) {
  const Outcome& outcome = range.main;
  return {{"conf", conf},
          {"cap_bytes", cap_bytes ? Json(*cap_bytes) : Json(nullptr)},
          {"completed", outcome.completed},
          {"stopped_at_event", outcome.stopped_at_event == kNoEvent ? Json(nullptr) : Json(outcome.stopped_at_event)},
          {"refused_bytes", outcome.completed ? Json(nullptr) : Json(outcome.refused_bytes)},
          {"asserts", outcome.impossible},
          {"peak_requested", outcome.peak_requested},
          {"peak_allocated", outcome.peak_allocated},
          {"peak_reserved", outcome.peak_reserved},
          {"peak_reserved_low", or_null(range.reserved_low())},
          {"peak_reserved_high", or_null(range.reserved_high())},
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
  add_measures(findings, changes);
  add_best_setting(findings, diagnosis, changes);
  payload["findings"] = findings_json(findings);
  payload["runs"] = Json::array();
  for (const SweepRun& run : changes.runs)
    payload["runs"].push_back(run_json(run.conf, changes.cap_bytes, run.outcome));
  payload["measures"] = measures_json(changes.measures, changes.measures_have_cap, std::nullopt);
  payload["verdicts"] = Json::array();
  for (const Verdict& verdict : changes.verdicts) payload["verdicts"].push_back(verdict_json(verdict));
  payload["caveats"] = caveats_json(all_caveats(diagnosis, changes));
  return payload;
}

}  // namespace oomscope
