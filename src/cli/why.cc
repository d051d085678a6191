// oomscope why EVIDENCE...: why did it run out, and what would have made it fit.
#include "cli/why.h"

#include <algorithm>
#include <span>

#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "analysis/text_facts.h"
#include "base/bytes_text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "cli/why_combined.h"
#include "cli/why_evidence.h"
#include "cli/why_ranks.h"
#include "evidence/context_file.h"
#include "evidence/modules_beside.h"
#include "report/explain_document.h"
#include "report/findings_document.h"
#include "report/modules_document.h"
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
    return Error{.code = "bad-usage", .what = "error.one-id", .where = "--explain", .hint = "error.unknown-id.hint"};
  }
  return read_language(raw.language, options.why.language);
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  if (raw.explain) return finish_explain(raw, options);
  if (raw.evidence.empty()) {
    return Error{.code = "bad-usage", .what = "error.no-evidence", .where = "why", .hint = "oomscope why oom.pickle"};
  }
  options.why.evidence = raw.evidence;
  options.why.rules = raw.rules;
  options.why.no_sweep = raw.no_sweep;
  OOM_TRY([[maybe_unused]] const Done device, read_device(raw.device, options.why.device));
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, options.why.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, options.why.language));
  return read_gpu(raw.gpu, options.why.gpu);
}

// The Python package leaves context.json beside a snapshot. What the user or a log says goes first.
void add_context(const FailureContext& context, WhyArguments& arguments, WhyOptions& why) {
  if (!arguments.cap_bytes) why.cap_bytes = context.limit_bytes;
  if (arguments.gpu || !context.card_bytes) return;
  arguments.gpu = GpuMemory{
      .name = context.gpu_name, .total_bytes = *context.card_bytes, .source = GpuMemorySource::reported, .note = ""};
  why.card_bytes = context.card_bytes;
  why.own_bytes = context.own_bytes;
  why.others_bytes = context.others_bytes;
}

// With what lies beside the snapshot, unless the recording contradicts it.
Result<Diagnosis> diagnose_in_context(const std::string& path, const Snapshot& snapshot, int32_t device,
                                      WhyArguments& arguments, WhyOptions& why, Caveats& caveats) {
  const std::optional<FailureContext> context = context_beside(path);
  if (!context || context->device.value_or(device) != device) return diagnose(snapshot, device, why);
  const WhyArguments asked = arguments;
  const WhyOptions without = why;
  add_context(*context, arguments, why);
  Result<Diagnosis> diagnosis = diagnose(snapshot, device, why);
  if (diagnosis || asked.gpu || diagnosis.error().code != "gpu-too-small") return diagnosis;
  caveats.push_back(Caveat{.code = "context-contradicted",
                           .values = {{"total", format_bytes(context->card_bytes.value_or(0))}},
                           .source = CaveatSource::recording});
  arguments = asked;
  why = without;
  return diagnose(snapshot, device, why);
}

Result<Kind> explain_snapshot(const std::string& path, const Snapshot& snapshot, WhyArguments arguments,
                              Output& output) {
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.rules));
  Caveats caveats;
  OOM_TRY(const std::vector<int32_t> devices, choose_devices(snapshot, arguments.device));
  const int32_t device = device_to_explain(snapshot, devices, caveats);
  const ExplainListener* listener = arguments.listener;
  WhyOptions why{.cap_bytes = arguments.cap_bytes,
                 .card_bytes = std::nullopt,
                 .own_bytes = std::nullopt,
                 .others_bytes = std::nullopt,
                 .rules = rules,
                 .threads = thread_count(),
                 .progress = [&](size_t done, size_t total) {
                   output.progress().update(say("why.progress", arguments.language), static_cast<int64_t>(done),
                                            static_cast<int64_t>(total));
                 }};
  if (arguments.gpu) why.card_bytes = arguments.gpu->total_bytes;
  OOM_TRY(Diagnosis diagnosis, diagnose_in_context(path, snapshot, device, arguments, why, caveats));
  add_caveats(caveats, diagnosis.caveats);
  RunFacts facts = find_run_facts(snapshot, diagnosis);
  if (arguments.gpu) facts.compute_capability = compute_capability(arguments.gpu->name);
  std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts, .text = nullptr});
  try_changes(findings, facts);
  const size_t first_section = output.document().sections.size();
  if (listener != nullptr) {
    why.curve_points = listener->curve_points;
    why.beside = [&] { listener->read(snapshot, diagnosis, facts); };
  }
  for (Section& section : diagnosis_sections(diagnosis, findings, arguments.language)) {
    output.add(std::move(section));
  }
  Changes changes;
  if (!diagnosis.instant.failed) why.room_bytes = cap_of(std::nullopt, arguments.gpu, changes.caveats);
  if (!arguments.no_sweep) {
    OOM_TRY(changes, find_changes(diagnosis, why));
    if (changes.cap_kind == CapKind::limit) {
      const std::span<const SweepRun> shown(changes.runs.data(), std::min(changes.runs.size(), kMostRuns));
      add_limit_caveat(changes.cap_bytes, most_reserved(shown), changes.caveats);
    }
  } else {
    if (!rules) changes.rules = rules_not_told_apart(*diagnosis.verification);
    if (why.beside) why.beside();
  }
  for (Section& section : changes_sections(diagnosis, changes, findings, path, arguments.language)) {
    output.add(std::move(section));
  }
  output.payload() = why_payload(diagnosis, changes, findings, path);
  if (const std::vector<ModuleUse> modules = modules_beside(path); !modules.empty()) {
    output.add(modules_section(modules, arguments.language));
    output.payload()["modules"] = modules_json(modules);
  }
  if (listener != nullptr) {
    listener->explained({.path = path,
                         .diagnosis = diagnosis,
                         .changes = changes,
                         .findings = findings,
                         .first_section = first_section,
                         .end_section = output.document().sections.size()});
  }
  if (!snapshot.complete || diagnosis.verification->timeline.trace().size_events() == 0) output.set_incomplete();
  return diagnosis.kind;
}

// What the message says of the limit and the card holds for the recording of the same failure too; what the user says
// goes first. Figures of another card contradict the recording, and are left aside with a caveat.
Result<Kind> explain_with_log(const std::string& path, const Snapshot& snapshot, const WhyArguments& arguments,
                              TextFacts& facts, Output& output) {
  WhyArguments told = arguments;
  const bool has_figures = facts.failure != nullptr && facts.failure->family == Family::allocator;
  if (has_figures && !told.cap_bytes) told.cap_bytes = facts.card.limit;
  if (!has_figures || told.gpu || !facts.card.total) return explain_snapshot(path, snapshot, told, output);
  told.gpu = GpuMemory{
      .name = facts.around.gpu_name, .total_bytes = *facts.card.total, .source = GpuMemorySource::reported, .note = ""};
  Result<Kind> kind = explain_snapshot(path, snapshot, told, output);
  if (kind || kind.error().code != "gpu-too-small") return kind;
  facts.caveats.push_back(
      Caveat{"text-of-another-card", {{"total", format_bytes(*facts.card.total)}}, CaveatSource::model});
  return explain_snapshot(path, snapshot, arguments, output);
}

Result<Kind> explain_file(const std::string& path, const WhyArguments& arguments, Output& output) {
  OOM_TRY(const Snapshot snapshot, load_snapshot(path));
  return explain_snapshot(path, snapshot, arguments, output);
}

Result<Done> explain(const std::string& path, const WhyArguments& arguments, Output& output) {
  OOM_TRY([[maybe_unused]] const Kind kind, explain_file(path, arguments, output));
  return Done{};
}

// A file, or a folder of ranks.
Result<Done> explain_path(const std::string& path, const WhyArguments& arguments, Output& output) {
  if (!is_folder(path)) return explain(path, arguments, output);
  OOM_TRY(const RankFiles files, find_rank_files(path));
  if (files.files.size() == 1 && files.caveats.empty()) return explain(files.files.front().path, arguments, output);
  OOM_TRY([[maybe_unused]] const SnapshotVerdict verdict, explain_ranks(files, arguments, explain_file, output));
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

// Snapshots by their paths: one, the ranks of one job, or several that have nothing to do with each other.
Result<Done> explain_snapshots(const std::vector<std::string>& paths, const WhyArguments& arguments, Output& output) {
  if (paths.size() == 1) return explain_path(paths.front(), arguments, output);
  if (look_like_ranks(paths)) {
    OOM_TRY([[maybe_unused]] const SnapshotVerdict verdict,
            explain_ranks(choose_rank_files(paths), arguments, explain_file, output));
    return Done{};
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& path : paths) {
    output.add_sentence(path, Style::cyan);
    OOM_TRY([[maybe_unused]] const Done explained, explain_path(path, arguments, output));
    all.push_back(output.payload());
  }
  output.payload() = {{"schema", "oomscope.why-list/1"}, {"results", std::move(all)}};
  return Done{};
}

Result<int> run(const Options& options, Output& output) {
  if (options.why.explain) return run_explain(options.why, output);
  return explain_evidence(options.why, output);
}

}  // namespace

Result<int> explain_evidence(const WhyArguments& arguments, Output& output) {
  OOM_TRY(const GivenEvidence given, sort_evidence(arguments.evidence, arguments.language));
  TextFacts facts = find_text_facts(given.logs);
  const bool is_named = arguments.gpu && arguments.gpu->source != GpuMemorySource::given;
  if (is_named) facts.around.gpu_name = arguments.gpu->name;
  Caveats unread;
  add_unread(given.unread, unread);
  add_caveats(unread, facts.caveats);
  const bool has_snapshot = given.piped || !given.snapshots.empty();
  if (given.logs.empty()) {
    if (given.piped) {
      OOM_TRY([[maybe_unused]] const Kind kind, explain_snapshot("-", *given.piped, arguments, output));
    } else {
      OOM_TRY([[maybe_unused]] const Done explained, explain_snapshots(given.snapshots, arguments, output));
    }
    for (const Caveat& caveat : unread) output.add_sentence(caveat_text(caveat, arguments.language));
    for (const nlohmann::ordered_json& caveat : caveats_json(unread)) output.payload()["caveats"].push_back(caveat);
  } else if (has_snapshot) {
    OOM_TRY([[maybe_unused]] const Done explained, explain_combined(given, arguments, facts, explain_with_log, output));
  } else {
    const std::vector<Finding> findings = find_findings({.run = nullptr, .text = &facts});
    for (Section& section : text_sections(facts, findings, arguments.language)) output.add(std::move(section));
    output.payload() = text_payload(facts, findings);
    if (facts.failure == nullptr && facts.outlived() == nullptr) output.set_incomplete();
  }
  return 0;
}

Command why_command() {
  return Command{
      .name = "why",
      .summary = "why did it run out of memory, and what would have made it fit",
      .examples = {"oomscope why train.log", "oomscope why 'CUDA out of memory. Tried to allocate ...'",
                   "oomscope why oom.pickle --gpu \"RTX 4090\"", "oomscope why train.log oom.pickle",
                   "oomscope why ranks/", "zstdcat oom.pickle.zst | oomscope why -",
                   "oomscope why --explain graph-kept"},
      .options = {{"EVIDENCE", "", "logs, error lines, snapshots, a folder of ranks; - is standard input",
                   &RawOptions::evidence},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  {"--no-sweep", "", "do not replay other settings: the cause and its changes", &RawOptions::no_sweep},
                  {"--explain", "",
                   "not evidence but an ID: explain a cause, remedy or claim; alone: the table of symptoms",
                   &RawOptions::explain},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
