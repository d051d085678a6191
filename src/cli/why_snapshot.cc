#include "cli/why_snapshot.h"

#include <algorithm>
#include <utility>

#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "base/bytes_text.h"
#include "cli/load_snapshot.h"
#include "report/findings_document.h"
#include "report/why_document.h"

namespace oomscope {
namespace {

// Of several devices the one whose request failed last; else the one that holds most. A caveat names the others.
Result<int32_t> device_to_explain(const Snapshot& snapshot, const WhyArguments& arguments, Caveats& caveats) {
  OOM_TRY(const std::vector<int32_t> devices, choose_devices(snapshot, arguments.device));
  std::string list;
  std::vector<std::pair<int64_t, int64_t>> weights(snapshot.traces.size());  // time of its failure, bytes it holds
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device >= 0 && static_cast<size_t>(segment.device) < weights.size())
      weights[static_cast<size_t>(segment.device)].second += segment.total_size;
  }
  int32_t chosen = devices.front();
  for (int32_t device : devices) {
    const Trace& trace = snapshot.traces[static_cast<size_t>(device)];
    const auto failed = std::find(trace.action.rbegin(), trace.action.rend(), Action::oom);
    const auto at = static_cast<size_t>(trace.action.rend() - failed);
    if (at > 0) weights[static_cast<size_t>(device)].first = std::max<int64_t>(trace.time_us[at - 1], 1);
    if (weights[static_cast<size_t>(device)] > weights[static_cast<size_t>(chosen)]) chosen = device;
    list += (list.empty() ? "" : ", ") + std::to_string(device);
  }
  if (devices.size() > 1) {
    caveats.push_back(Caveat{.code = "one-of-devices",
                             .values = {{"device", std::to_string(chosen)}, {"devices", list}},
                             .source = CaveatSource::model});
  }
  return chosen;
}

}  // namespace

Result<Kind> explain_snapshot(const std::string& path, const Snapshot& snapshot, const WhyArguments& arguments,
                              Output& output) {
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.rules));
  Caveats caveats;
  OOM_TRY(const int32_t device, device_to_explain(snapshot, arguments, caveats));
  WhyOptions why{.cap_bytes = arguments.cap_bytes,
                 .card_bytes = std::nullopt,
                 .rules = rules,
                 .threads = thread_count(),
                 .progress = [&](size_t done, size_t total) {
                   output.progress().update(say("why.progress", arguments.language), static_cast<int64_t>(done),
                                            static_cast<int64_t>(total));
                 }};
  if (arguments.gpu) why.card_bytes = arguments.gpu->total_bytes;
  OOM_TRY(Diagnosis diagnosis, diagnose(snapshot, device, why));
  add_caveats(caveats, diagnosis.caveats);
  RunFacts facts = find_run_facts(snapshot, diagnosis);
  if (arguments.gpu) facts.compute_capability = compute_capability(arguments.gpu->name);
  std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts, .text = nullptr});
  if (!arguments.no_sweep) try_first_change(findings, diagnosis);
  for (Section& section : diagnosis_sections(diagnosis, findings, arguments.language)) {
    output.add(std::move(section));
  }
  Changes changes;
  if (!arguments.no_sweep) {
    OOM_TRY(changes, find_changes(diagnosis, why));
  } else if (!rules) {
    changes.rules = rules_not_told_apart(*diagnosis.verification);
  }
  for (Section& section : changes_sections(diagnosis, changes, findings, path, arguments.language)) {
    output.add(std::move(section));
  }
  output.payload() = why_payload(diagnosis, changes, findings, path);
  if (!snapshot.complete || diagnosis.verification->timeline.trace().size_events() == 0) output.set_incomplete();
  return diagnosis.kind;
}

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

}  // namespace oomscope
