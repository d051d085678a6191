// oomscope why EVIDENCE...: why did it run out, and what would have made it fit.
#include <filesystem>

#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "cli/why_ranks.h"
#include "report/explain_document.h"
#include "report/findings_document.h"
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
  options.why.no_sweep = raw.no_sweep;
  OOM_TRY([[maybe_unused]] const Done device, read_device(raw.device, options.why.device));
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, options.why.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, options.why.language));
  return read_gpu(raw.gpu, options.why.gpu);
}

Result<Done> explain(const std::string& path, const WhyArguments& arguments, Output& output) {
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.rules));
  OOM_TRY(const Snapshot snapshot, load_snapshot(path));
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
  const RunFacts facts = find_run_facts(snapshot, diagnosis);
  std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts, .text = nullptr});
  if (!arguments.no_sweep) try_first_change(findings, diagnosis);
  for (Section& section : finding_sections(findings, arguments.language)) output.add(std::move(section));
  for (Section& section : diagnosis_sections(diagnosis, findings, arguments.language)) {
    output.add(std::move(section));
  }
  Changes changes;
  if (!arguments.no_sweep) {
    OOM_TRY(changes, find_changes(diagnosis, why));
  }
  for (Section& section : changes_sections(diagnosis, changes, path, arguments.language))
    output.add(std::move(section));
  output.payload() = why_payload(diagnosis, changes, findings, path);
  if (!snapshot.complete || diagnosis.verification->timeline.trace().size_events() == 0) output.set_incomplete();
  return Done{};
}

// A file, or a folder of ranks.
Result<Done> explain_path(const std::string& path, const WhyArguments& arguments, Output& output) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return explain(path, arguments, output);
  OOM_TRY(const RankFiles files, find_rank_files(path));
  return explain_ranks(files, arguments, explain, output);
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
  if (arguments.evidence.size() == 1) {
    OOM_TRY([[maybe_unused]] const Done explained, explain_path(arguments.evidence.front(), arguments, output));
    return 0;
  }
  if (look_like_ranks(arguments.evidence)) {
    OOM_TRY([[maybe_unused]] const Done explained,
            explain_ranks(choose_rank_files(arguments.evidence), arguments, explain, output));
    return 0;
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& path : arguments.evidence) {
    output.add_sentence(path, Style::cyan);
    OOM_TRY([[maybe_unused]] const Done explained, explain_path(path, arguments, output));
    all.push_back(output.payload());
  }
  output.payload() = {{"schema", "oomscope.why-list/1"}, {"results", std::move(all)}};
  return 0;
}

}  // namespace

Command why_command() {
  return Command{
      .name = "why",
      .summary = "why did it run out of memory, and what would have made it fit",
      .examples = {"oomscope why oom.pickle", "oomscope why ranks/", "oomscope why oom.pickle --gpu \"RTX 4090\"",
                   "zstdcat oom.pickle.zst | oomscope why -", "oomscope why --explain graph-kept"},
      .options = {{"EVIDENCE", "", "snapshots, or a folder of ranks; - is standard input", &RawOptions::evidence},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  {"--no-sweep", "", "do not replay other settings: the cause alone", &RawOptions::no_sweep},
                  {"--explain", "",
                   "not evidence but an ID: explain a cause, remedy or claim; alone: the table of symptoms",
                   &RawOptions::explain},
                  {"--lang", "en|zh", "the language of the answer; else the locale's. JSON is English",
                   &RawOptions::language}},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
