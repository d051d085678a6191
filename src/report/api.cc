// The public facade over the layers: see include/oomscope/oomscope.h.
#include "oomscope/oomscope.h"

#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "analysis/why.h"
#include "evidence/marks_file.h"
#include "evidence/snapshot_reader.h"
#include "replay/what_if.h"
#include "report/why_document.h"

namespace oomscope::api {
namespace {

Status status_of(const Error& error) {
  const SaidError said = say(error, Language::english);
  return Status{error.code, said.what, said.where, said.hint};
}

// As the command line has it: of several devices the one that failed, else the fullest.
Result<int32_t> device_to_explain_of(const Snapshot& snapshot, int wanted, Caveats& caveats) {
  if (wanted >= 0 && static_cast<size_t>(wanted) < snapshot.traces.size()) return static_cast<int32_t>(wanted);
  std::vector<int32_t> devices = devices_of(snapshot);
  std::erase_if(devices, [&](int32_t device) { return static_cast<size_t>(device) >= snapshot.traces.size(); });
  if (wanted < 0 && !devices.empty()) return device_to_explain(snapshot, devices, caveats);
  return Error{.code = "device-unknown",
               .what = "the snapshot has nothing of that device",
               .where = "device",
               .hint = "leave it out: the device that failed is taken"};
}

Result<int32_t> device_of(const Snapshot& snapshot, int wanted) {
  const std::vector<int32_t> devices = devices_of(snapshot);
  if (wanted >= 0 && static_cast<size_t>(wanted) < snapshot.traces.size()) return static_cast<int32_t>(wanted);
  if (wanted < 0 && devices.size() == 1 && static_cast<size_t>(devices[0]) < snapshot.traces.size()) return devices[0];
  return Error{.code = "device-ambiguous",
               .what = "error.not-one-device",
               .where = "device",
               .hint = "error.not-one-device.hint"};
}

}  // namespace

JsonAnswer why(const std::string& path, const WhyOptions& options) {
  JsonAnswer answer;
  auto run = [&]() -> Result<Done> {
    OOM_TRY(Snapshot snapshot, read_snapshot_file(path));
    add_marks_beside(path, snapshot);
    Caveats caveats;
    OOM_TRY(const int32_t device, device_to_explain_of(snapshot, options.device, caveats));
    oomscope::WhyOptions inner{.cap_bytes = options.cap_bytes,
                               .card_bytes = options.card_bytes,
                               .own_bytes = std::nullopt,
                               .others_bytes = std::nullopt,
                               .rules = std::nullopt,
                               .threads = options.threads,
                               .progress = {}};
    OOM_TRY(Diagnosis diagnosis, diagnose(snapshot, device, inner));
    diagnosis.caveats.insert(diagnosis.caveats.begin(), caveats.begin(), caveats.end());
    OOM_TRY(const Changes changes, find_changes(diagnosis, inner));
    const RunFacts facts = find_run_facts(snapshot, diagnosis);
    std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts, .text = nullptr});
    try_changes(findings, facts);
    answer.json = why_payload(diagnosis, changes, findings, path)
                      .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    return Done{};
  };
  const Result<Done> done = run();
  if (!done) answer.status = status_of(done.error());
  return answer;
}

ReplayAnswer replay(const std::string& path, const ReplayOptions& options) {
  ReplayAnswer answer;
  auto run = [&]() -> Result<Done> {
    OOM_TRY(const Snapshot snapshot, read_snapshot_file(path));
    OOM_TRY(const int32_t device, device_of(snapshot, options.device));
    const std::unique_ptr<Verification> verification = verify(snapshot, device);
    answer.recording_exact = verification->exact();
    WhatIf question{
        .rules = verification->config.rules, .settings = verification->config.settings, .cap_bytes = options.cap_bytes};
    if (options.conf) {
      OOM_TRY(const ParsedSettings parsed, parse_allocator_settings(*options.conf, question.rules.parser));
      question.settings = parsed.settings;
    }
    const OutcomeRange range = replay_range(requests_of(*verification), question);
    answer.completed = range.main.completed;
    answer.peak_requested = range.main.peak_requested;
    answer.peak_allocated = range.main.peak_allocated;
    answer.peak_reserved = range.main.peak_reserved;
    answer.peak_reserved_low = range.peak_reserved_low;
    answer.peak_reserved_high = range.peak_reserved_high;
    answer.num_device_alloc = range.main.num_device_alloc;
    answer.num_alloc_retries = range.main.num_alloc_retries;
    answer.num_ooms = range.main.num_ooms;
    return Done{};
  };
  const Result<Done> done = run();
  if (!done) answer.status = status_of(done.error());
  return answer;
}

}  // namespace oomscope::api
