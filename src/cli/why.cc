// oomscope why EVIDENCE...: why did it run out, and what would have made it fit.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "analysis/rules/rule.h"
#include "analysis/text_facts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "evidence/evidence_file.h"
#include "evidence/text/text_reader.h"
#include "report/explain_document.h"
#include "report/text_document.h"
#include "report/why_document.h"

namespace oomscope {
namespace {

// `why --explain [ID]`: the ID stands where evidence would.
Result<Done> finish_explain(const RawOptions& raw, Options& options) {
  options.why.explain = true;
  const bool has_id = !raw.evidence.empty() && raw.evidence.front() != "-";
  if (has_id) options.why.explain_id = raw.evidence.front();
  if (raw.evidence.size() > 1) {
    return Error{
        .code = "bad-usage", .what = "takes one ID", .where = "--explain", .hint = "oomscope why --explain lists them"};
  }
  return read_language(raw.language, options.why.language);
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  if (raw.explain) return finish_explain(raw, options);
  if (raw.evidence.empty()) {
    return Error{.code = "bad-usage", .what = "no evidence given", .where = "why", .hint = "oomscope why oom.pickle"};
  }
  options.why.evidence = raw.evidence;
  options.why.rules = raw.rules;
  OOM_TRY([[maybe_unused]] const Done device, read_device(raw.device, options.why.device));
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, options.why.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, options.why.language));
  return read_gpu(raw.gpu, options.why.gpu);
}

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

// Evidence by what it is: snapshots with their paths, logs, and error lines typed as an argument.
struct Given {
  std::vector<std::pair<std::string, Snapshot>> snapshots;
  std::vector<TextEvidence> logs;
};

bool looks_like_file_name(std::string_view word) {
  for (std::string_view ending :
       {".log", ".txt", ".out", ".err", ".pickle", ".pkl", ".json", ".zst", ".gz", ".xz", ".html"}) {
    if (word.ends_with(ending)) return true;
  }
  return false;
}

// A word that is no file and holds a message that we know is the message itself; a mistyped path is not.
bool is_typed_message(const std::string& word) {
  const bool has_blank = word.find_first_of(" \n") != std::string::npos;
  return has_blank && access(word.c_str(), F_OK) != 0 && !looks_like_file_name(word) && looks_like_message(word);
}

Result<Given> read_all(const std::vector<std::string>& evidence) {
  Given given;
  for (const std::string& word : evidence) {
    if (is_typed_message(word)) {
      given.logs.push_back(read_text(word, "argument"));
      continue;
    }
    if (word == "-" && isatty(STDIN_FILENO) == 1)
      std::fputs("Paste the log or the error line, then press Ctrl-D.\n", stderr);
    Result<EvidenceFile> file = read_evidence_file(word == "-" ? "/dev/stdin" : word, shown_name(word));
    if (!file) return at_its_name(file.error(), word);
    if (TextEvidence* text = std::get_if<TextEvidence>(&*file)) {
      given.logs.push_back(std::move(*text));
    } else {
      given.snapshots.emplace_back(word, with_all_traces(std::move(std::get<Snapshot>(*file))));
    }
  }
  return given;
}

std::vector<Finding> find_all(const CaseFacts& facts) {
  std::vector<Finding> all;
  for (const Cause& cause : causes()) {
    for (Finding& finding : cause.find(facts)) all.push_back(std::move(finding));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Finding& a, const Finding& b) { return a.confidence < b.confidence; });
  return all;
}

Result<Kind> explain_snapshot(const std::string& path, const Snapshot& snapshot, const WhyArguments& arguments,
                              Output& output) {
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.rules));
  OOM_TRY(const int32_t device, choose_device(snapshot, arguments.device));
  WhyOptions why{.cap_bytes = arguments.cap_bytes,
                 .card_bytes = std::nullopt,
                 .rules = rules,
                 .threads = thread_count(),
                 .progress = [&](size_t done, size_t total) {
                   output.progress().update(say("why.progress", arguments.language), static_cast<int64_t>(done),
                                            static_cast<int64_t>(total));
                 }};
  if (arguments.gpu) why.card_bytes = arguments.gpu->total_bytes;
  OOM_TRY(const Diagnosis diagnosis, diagnose(snapshot, device, why));
  for (Section& section : diagnosis_sections(diagnosis, arguments.language)) output.add(std::move(section));
  OOM_TRY(const Changes changes, find_changes(diagnosis, why));
  for (Section& section : changes_sections(diagnosis, changes, path, arguments.language))
    output.add(std::move(section));
  output.payload() = why_payload(diagnosis, changes, path);
  if (!snapshot.complete || diagnosis.verification->timeline.trace().size_events() == 0) output.set_incomplete();
  return diagnosis.kind;
}

void explain_logs(const TextFacts& facts, const WhyArguments& arguments, Output& output) {
  const std::vector<Finding> findings = find_all({.run = nullptr, .text = &facts});
  for (Section& section : text_sections(facts, findings, arguments.language)) output.add(std::move(section));
  output.payload() = text_payload(facts, findings);
  if (facts.failure == nullptr) output.set_incomplete();
}

// One verdict: the snapshot is exact about the GPU; a log alone knows of the host. Where both tell of the GPU the
// snapshot's kind stands, with the log's phase and figures beside it.
Result<Done> explain_together(const std::string& path, const Snapshot& snapshot, TextFacts& facts,
                              const WhyArguments& arguments, Output& output) {
  OOM_TRY(const Kind kind, explain_snapshot(path, snapshot, arguments, output));
  nlohmann::ordered_json payload = std::move(output.payload());
  const bool log_decides = log_outweighs_snapshot(facts, kind);
  if (log_decides) {
    facts.caveats.push_back(
        Caveat{"text-and-snapshot-differ",
               {{"log", std::string(name_of(facts.kind))}, {"snapshot", std::string(name_of(kind))}},
               CaveatSource::model});
  }
  explain_logs(facts, arguments, output);
  nlohmann::ordered_json log = std::move(output.payload());
  if (log_decides) {
    payload["kind"] = log["kind"];
    payload["confidence"] = log["confidence"];
  }
  if (!log_decides && facts.failure != nullptr && facts.kind != kind) payload["also"].push_back(log["kind"]);
  payload["also"].insert(payload["also"].end(), log["also"].begin(), log["also"].end());
  payload["phase"] = log["phase"];
  payload["findings"].insert(payload["findings"].end(), log["findings"].begin(), log["findings"].end());
  payload["caveats"].insert(payload["caveats"].end(), log["caveats"].begin(), log["caveats"].end());
  payload["log"] = std::move(log);
  output.payload() = std::move(payload);
  return Done{};
}

Result<int> run_explain(const WhyArguments& arguments, Output& output) {
  Document document;
  if (arguments.explain_id.empty()) {
    document = explain_all(arguments.language);
  } else {
    OOM_TRY(document, explain_one(arguments.explain_id, arguments.language));
  }
  for (Section& section : document.sections) output.add(std::move(section));
  output.payload() = std::move(document.payload);
  return 0;
}

Result<int> run(const Options& options, Output& output) {
  const WhyArguments& arguments = options.why;
  if (arguments.explain) return run_explain(arguments, output);
  OOM_TRY(const Given given, read_all(arguments.evidence));
  TextFacts facts = find_text_facts(given.logs);
  if (given.snapshots.empty()) {
    explain_logs(facts, arguments, output);
    return 0;
  }
  if (given.snapshots.size() == 1) {
    const auto& [path, snapshot] = given.snapshots.front();
    if (given.logs.empty()) {
      OOM_TRY([[maybe_unused]] const Kind kind, explain_snapshot(path, snapshot, arguments, output));
    } else {
      OOM_TRY([[maybe_unused]] const Done done, explain_together(path, snapshot, facts, arguments, output));
    }
    return 0;
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [path, snapshot] : given.snapshots) {
    output.add_sentence(path, Style::cyan);
    OOM_TRY([[maybe_unused]] const Kind kind, explain_snapshot(path, snapshot, arguments, output));
    all.push_back(std::move(output.payload()));
  }
  if (!given.logs.empty()) {
    explain_logs(facts, arguments, output);
    all.push_back(std::move(output.payload()));
  }
  output.payload() = {{"schema", "oomscope.why-list/1"}, {"results", std::move(all)}};
  return 0;
}

}  // namespace

Command why_command() {
  return Command{
      .name = "why",
      .summary = "why did it run out of memory, and what would have made it fit",
      .examples = {"oomscope why train.log", "oomscope why 'CUDA out of memory. Tried to allocate ...'",
                   "oomscope why oom.pickle --gpu \"RTX 4090\"", "oomscope why train.log oom.pickle",
                   "zstdcat oom.pickle.zst | oomscope why -", "oomscope why --explain graph-kept"},
      .options = {{"EVIDENCE", "", "logs, error lines, snapshots; - is standard input", &RawOptions::evidence},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  {"--explain", "",
                   "not evidence but an ID: explain a cause, remedy or claim; alone: the table of symptoms",
                   &RawOptions::explain},
                  {"--lang", "en|zh", "the language of the answer; else the locale's. JSON is English",
                   &RawOptions::language}},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
