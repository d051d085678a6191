// oomscope why EVIDENCE...: why did it run out, and what would have made it fit.
#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "report/findings_document.h"
#include "report/why_document.h"

namespace oomscope {
namespace {

Result<Done> finish(const RawOptions& raw, Options& options) {
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
                   output.progress().update("replaying other settings", static_cast<int64_t>(done),
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

Result<int> run(const Options& options, Output& output) {
  const WhyArguments& arguments = options.why;
  if (arguments.evidence.size() == 1) {
    OOM_TRY([[maybe_unused]] const Done explained, explain(arguments.evidence.front(), arguments, output));
    return 0;
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& path : arguments.evidence) {
    output.add_sentence(path, Style::cyan);
    OOM_TRY([[maybe_unused]] const Done explained, explain(path, arguments, output));
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
      .examples = {"oomscope why oom.pickle", "oomscope why oom.pickle --gpu \"RTX 4090\"",
                   "zstdcat oom.pickle.zst | oomscope why -"},
      .options = {{"EVIDENCE", "", "snapshots; - is standard input", &RawOptions::evidence},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  {"--no-sweep", "", "do not replay other settings: the cause alone", &RawOptions::no_sweep},
                  {"--lang", "en|zh", "the language of the answer; else the locale's. JSON is English",
                   &RawOptions::language}},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
