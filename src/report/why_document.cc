#include "report/why_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/show_document.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFirstChanges = 3;
constexpr size_t kMostRuns = 12;

Section joined(Section section) {
  section.joined = true;
  return section;
}

// Rows that hardly matter become one, so that the balance stays on the first screen; --json has them all.
Table balance_table(const Diagnosis& diagnosis) {
  Table table{.title = "",
              .columns = {{.header = ""}, {.header = "", .align = Align::right}, {.header = "", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  const int64_t little = diagnosis.instant.reserved_bytes / 50;
  int64_t others_bytes = 0;
  std::vector<std::string> others;
  std::vector<Row> last;
  for (const BalanceRow& row : diagnosis.balance) {
    if (row.bytes && *row.bytes >= 0 && *row.bytes < little) {
      others_bytes += *row.bytes;
      others.push_back(row.name);
      continue;
    }
    const Row shown{.cells = {row.name, row.bytes ? format_mib(*row.bytes) : "?", row.source}, .style = Style::plain};
    (row.is_outside ? last : table.rows).push_back(shown);
  }
  if (!others.empty()) {
    std::string names = others.front();
    for (size_t i = 1; i < others.size(); ++i) names += "; " + others[i];
    table.rows.push_back(Row{.cells = {others.size() == 1 ? "[1 other]" : fmt::format("[{} others]", others.size()),
                                       format_mib(others_bytes), names},
                             .style = Style::plain});
  }
  table.rows.insert(table.rows.end(), last.begin(), last.end());
  table.rows.push_back(Row{.cells = {"total", format_mib(diagnosis.balance_total_bytes), "sum of the rows above"},
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

std::string result_text(const SweepRun& run, const Changes& changes) {
  const std::string text = reserved_text(run.outcome);
  if (!changes.cap_bytes) return text;
  return text + (run.outcome.completed_everywhere ? ", fits" : ", fits if addresses allow");
}

// The line to paste and its replayed result; a line too long for 80 columns is left to the table below, unless there is
// no shorter one.
std::vector<std::string> change_lines(const Diagnosis& diagnosis, const Changes& changes) {
  constexpr size_t kRoom = 78;
  std::vector<std::string> lines;
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  for (const SweepRun* run : list) {
    const std::string line = paste_line(run->conf) + "  " + result_text(*run, changes);
    if (line.size() <= kRoom && lines.size() < kFirstChanges) lines.push_back(line);
  }
  if (lines.empty() && !list.empty()) {
    lines.push_back(paste_line(list.front()->conf));
    lines.push_back("  " + result_text(*list.front(), changes));
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

std::string next_command(const Diagnosis& diagnosis, const std::string& path) {
  if (diagnosis.verification->timeline.trace().size_events() == 0) {
    return "next: torch.cuda.memory._record_memory_history(stacks=\"python\") before the first step, then dump again";
  }
  const std::string file = path == "-" ? "SNAPSHOT" : quoted(path);
  if (diagnosis.instant.failed) return fmt::format("next: oomscope show {} --at oom", file);
  return fmt::format("next: oomscope replay {} --smallest-cap", file);
}

Section bounds_section(const Diagnosis& diagnosis, const Changes& changes) {
  Table table{.title = "What no setting can beat",
              .columns = {{.header = ""}, {.header = "", .align = Align::right}, {.header = "", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  auto add = [&](const char* name, int64_t bytes, const char* meaning) {
    table.rows.push_back(Row{.cells = {name, format_mib(bytes), meaning}, .style = Style::plain});
  };
  add("floor", diagnosis.floor_bytes, "most requested bytes ever live at once: no allocator needs less");
  add("page floor", changes.page_floor_bytes, "the same in whole pages, for expandable segments");
  add("packing", changes.packing_bytes, "an explicit placement, checked: this much suffices");
  if (changes.cap_bytes)
    add("capacity", *changes.cap_bytes,
        changes.at_high_end ? "the high end of the limit's range: what the replays were given"
                            : "what the replays were given");
  return Section{.body = table, .joined = false};
}

Section verdict_section(const Changes& changes) {
  Table table{.title = "Failed requests",
              .columns = {{.header = "event", .align = Align::right},
                          {.header = "verdict"},
                          {.header = "by", .align = Align::right},
                          {.header = "proof", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  constexpr size_t kMost = 10;
  const size_t first = changes.verdicts.size() > kMost ? changes.verdicts.size() - kMost : 0;
  if (first > 0) table.rows.push_back(Row{.cells = {fmt::format("[{} others]", first)}, .style = Style::dim});
  for (size_t i = first; i < changes.verdicts.size(); ++i) {
    const Verdict& verdict = changes.verdicts[i];
    table.rows.push_back(
        Row{.cells = {format_count(verdict.event), name_of(verdict.verdict), format_mib(verdict.bytes), verdict.proof},
            .style = Style::plain});
  }
  return Section{.body = table, .joined = false};
}

Json balance_json(const Diagnosis& diagnosis) {
  Json rows = Json::array();
  for (const BalanceRow& row : diagnosis.balance) {
    rows.push_back(
        {{"name", row.name}, {"bytes", row.bytes ? Json(*row.bytes) : Json(nullptr)}, {"source", row.source}});
  }
  return rows;
}

const char* finding_id(const Diagnosis& diagnosis) {
  switch (diagnosis.kind) {
    case Kind::gpu_oom_fragmentation: return "fragmentation";
    case Kind::gpu_oom_capacity: return diagnosis.capacity.is_limit ? "capacity-limit" : "capacity";
    case Kind::gpu_oom_other_process: return "other-memory-on-card";
    case Kind::gpu_oom_first_alloc_or_context: return "card-full-before-start";
    default: return "peak";
  }
}

Json predicted_json(const SweepRun& run) {
  return {{"completed", run.outcome.main.completed},
          {"peak_reserved", run.outcome.main.peak_reserved},
          {"peak_reserved_low", run.outcome.peak_reserved_low},
          {"peak_reserved_high", run.outcome.peak_reserved_high}};
}

Json finding_json(const Diagnosis& diagnosis, const Changes& changes, const SweepRun* run) {
  const Instant& instant = diagnosis.instant;
  const Verification& verification = *diagnosis.verification;
  Json finding = {{"id", finding_id(diagnosis)},
                  {"claim", diagnosis.sentence + " " + changes.sentence},
                  {"bytes", instant.failed ? instant.request_bytes : instant.allocated_bytes},
                  {"confidence", name_of(diagnosis.confidence)},
                  {"instant", {{"event", event_json(instant.event)}, {"failed", instant.failed}}},
                  {"evidence", Json::array({proof_text(verification), diagnosis.trust})}};
  finding["change"] = nullptr;
  finding["predicted"] = nullptr;
  if (run == nullptr) return finding;
  finding["change"] = {{"id", "allocator-setting"},
                       {"text", run->conf.empty() ? "PyTorch's default settings" : run->conf},
                       {"command", paste_line(run->conf)}};
  finding["predicted"] = predicted_json(*run);
  return finding;
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

std::string proof_text(const Verification& verification) {
  const RuleSet& rules = verification.config.rules;
  const std::string mismatches = format_count(verification.replay->differences());
  return fmt::format("{} events replayed, {} mismatches, rules of torch {}",
                     format_count(static_cast<int64_t>(verification.timeline.trace().size_events())), mismatches,
                     rules.releases);
}

Table runs_table(const std::vector<SweepRun>& runs, size_t most, std::optional<int64_t> cap_bytes) {
  const std::string cap_option = cap_bytes ? fmt::format(" --cap {}M", *cap_bytes >> 20) : std::string();
  Table table{.title = "All settings that were replayed, best first",
              .columns = {{.header = "PYTORCH_CUDA_ALLOC_CONF"},
                          {.header = "fits"},
                          {.header = "reserved", .align = Align::right},
                          {.header = "retries", .align = Align::right, .may_drop = true},
                          {.header = "allocated", .align = Align::right, .may_drop = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (size_t i = 0; i < std::min(runs.size(), most); ++i) {
    const Outcome& outcome = runs[i].outcome.main;
    table.rows.push_back(Row{.cells = {runs[i].conf.empty() ? "(default)" : runs[i].conf,
                                       outcome.completed ? "yes" : "no", reserved_text(runs[i].outcome),
                                       format_count(outcome.num_alloc_retries), format_mib(outcome.peak_allocated)},
                             .style = outcome.completed ? Style::plain : Style::dim});
  }
  if (runs.size() > most) {
    const size_t others = runs.size() - most;
    const int64_t fitting = std::count_if(runs.begin() + static_cast<std::ptrdiff_t>(most), runs.end(),
                                          [](const SweepRun& run) { return run.outcome.main.completed; });
    table.rows.push_back(
        Row{.cells = {fmt::format("[{} others, {} of them fit: replay --sweep{}]", others, fitting, cap_option)},
            .style = Style::dim});
  }
  const bool any_range = std::any_of(runs.begin(), runs.end(), [](const SweepRun& run) {
    return run.outcome.peak_reserved_low != run.outcome.peak_reserved_high;
  });
  if (any_range) {
    table.note = "A range: where the driver puts segments decides ties up to torch 2.11, and nobody can know that.";
  }
  return table;
}

std::vector<Section> diagnosis_sections(const Diagnosis& diagnosis) {
  return {Section{.body = Sentence{.text = diagnosis.sentence, .style = Style::bold}, .joined = false},
          joined(Section{.body = balance_table(diagnosis), .joined = true})};
}

std::vector<Section> changes_sections(const Diagnosis& diagnosis, const Changes& changes, const std::string& path) {
  std::vector<Section> sections;
  if (!changes.sentence.empty()) {
    sections.push_back(
        joined(Section{.body = Sentence{.text = changes.sentence, .style = Style::bold}, .joined = true}));
  }
  const std::vector<std::string> lines = change_lines(diagnosis, changes);
  if (!lines.empty())
    sections.push_back(
        joined(Section{.body = Lines{.title = "", .lines = lines, .style = Style::green}, .joined = true}));
  sections.push_back(
      joined(Section{.body = Sentence{.text = "proof: " + proof_text(*diagnosis.verification)}, .joined = true}));
  sections.push_back(joined(
      Section{.body = Sentence{.text = fmt::format("trust: {}; {}", name_of(diagnosis.confidence), diagnosis.trust)},
              .joined = true}));
  sections.push_back(joined(Section{
      .body = Lines{.title = "", .lines = {next_command(diagnosis, path)}, .style = Style::plain}, .joined = true}));
  if (changes.runs.empty()) {
    sections.push_back(Section{.body = CaveatList{.caveats = diagnosis.caveats}, .joined = false});
    return sections;
  }
  sections.push_back(Section{.body = runs_table(changes.runs, kMostRuns, changes.cap_bytes), .joined = false});
  sections.push_back(bounds_section(diagnosis, changes));
  if (!changes.verdicts.empty()) sections.push_back(verdict_section(changes));
  sections.push_back(Section{.body = CaveatList{.caveats = all_caveats(diagnosis, changes)}, .joined = false});
  return sections;
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

Json why_payload(const Diagnosis& diagnosis, const Changes& changes, const std::string& path) {
  const Verification& verification = *diagnosis.verification;
  Json payload = {{"schema", "oomscope.why/1"},
                  {"file", path},
                  {"kind", std::string(name_of(diagnosis.kind))},
                  {"also", Json::array()}};
  for (Kind kind : diagnosis.also) payload["also"].push_back(std::string(name_of(kind)));
  payload["confidence"] = name_of(diagnosis.confidence);
  payload["phase"] = nullptr;  // found from a later release on
  payload["sentence"] = diagnosis.sentence + " " + changes.sentence;
  payload["numbers"] = numbers_json(diagnosis, changes);
  payload["balance"] = balance_json(diagnosis);
  payload["balance_total"] = diagnosis.balance_total_bytes;
  payload["proof"] = {{"rules", std::string(verification.config.rules.name)},
                      {"events", verification.timeline.trace().size_events()},
                      {"alloc_total", verification.replay->counts().alloc_total},
                      {"alloc_exact", verification.replay->counts().alloc_exact},
                      {"differences", verification.replay->differences()}};
  payload["findings"] = Json::array();
  const std::vector<const SweepRun*> list = proposals(diagnosis, changes);
  payload["findings"].push_back(finding_json(diagnosis, changes, list.empty() ? nullptr : list.front()));
  payload["runs"] = Json::array();
  for (const SweepRun& run : changes.runs)
    payload["runs"].push_back(run_json(run.conf, changes.cap_bytes, run.outcome));
  payload["verdicts"] = Json::array();
  for (const Verdict& verdict : changes.verdicts) payload["verdicts"].push_back(verdict_json(verdict));
  payload["caveats"] = caveats_json(all_caveats(diagnosis, changes));
  return payload;
}

}  // namespace oomscope
