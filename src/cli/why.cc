// oomscope why EVIDENCE...: why did it run out, and what would have made it fit.
#include "analysis/rules/ranking.h"
#include "analysis/text_facts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/why_combined.h"
#include "cli/why_evidence.h"
#include "cli/why_ranks.h"
#include "cli/why_snapshot.h"
#include "report/explain_document.h"
#include "report/text_document.h"

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

// Snapshots without logs: one, the ranks of one job, or several that have nothing to do with each other.
Result<Done> explain_snapshots(const std::vector<std::string>& paths, const WhyArguments& arguments, Output& output) {
  if (paths.size() > 1 && !look_like_ranks(paths)) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const std::string& path : paths) {
      output.add_sentence(path, Style::cyan);
      OOM_TRY([[maybe_unused]] const Done explained, explain_snapshots({path}, arguments, output));
      all.push_back(output.payload());
    }
    output.payload() = {{"schema", "oomscope.why-list/1"}, {"results", std::move(all)}};
    return Done{};
  }
  if (paths.size() == 1 && !is_folder(paths.front())) {
    OOM_TRY([[maybe_unused]] const Kind kind, explain_file(paths.front(), arguments, output));
    return Done{};
  }
  RankFiles files;
  if (paths.size() == 1) {
    OOM_TRY(files, find_rank_files(paths.front()));
  } else {
    files = choose_rank_files(paths);
  }
  OOM_TRY([[maybe_unused]] const SnapshotVerdict verdict, explain_ranks(files, arguments, explain_file, output));
  return Done{};
}

Result<int> run(const Options& options, Output& output) {
  const WhyArguments& arguments = options.why;
  if (arguments.explain) return run_explain(arguments, output);
  OOM_TRY(const GivenEvidence given, sort_evidence(arguments.evidence, arguments.language));
  TextFacts facts = find_text_facts(given.logs);
  const bool is_named = arguments.gpu && arguments.gpu->source != GpuMemorySource::given;
  if (is_named) facts.around.gpu_name = arguments.gpu->name;
  const bool has_snapshot = given.piped || !given.snapshots.empty();
  if (given.logs.empty()) {
    if (given.piped) {
      OOM_TRY([[maybe_unused]] const Kind kind, explain_snapshot("-", *given.piped, arguments, output));
    } else {
      OOM_TRY([[maybe_unused]] const Done explained, explain_snapshots(given.snapshots, arguments, output));
    }
  } else if (has_snapshot) {
    OOM_TRY([[maybe_unused]] const Done explained, explain_combined(given, arguments, facts, output));
  } else {
    const std::vector<Finding> findings = find_findings({.run = nullptr, .text = &facts});
    for (Section& section : text_sections(facts, findings, arguments.language)) output.add(std::move(section));
    output.payload() = text_payload(facts, findings);
    if (facts.failure == nullptr) output.set_incomplete();
  }
  return 0;
}

}  // namespace

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
                  {"--no-sweep", "", "do not replay other settings: the cause alone", &RawOptions::no_sweep},
                  {"--explain", "",
                   "not evidence but an ID: explain a cause, remedy or claim; alone: the table of symptoms",
                   &RawOptions::explain},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
