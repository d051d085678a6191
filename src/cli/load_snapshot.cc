#include "cli/load_snapshot.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "base/bytes_text.h"
#include "base/did_you_mean.h"
#include "evidence/marks_file.h"
#include "model/pairing_ahead.h"
#include "model/timeline.h"
#include "types/context_size.h"

namespace oomscope {
namespace {

std::string list_of(const std::vector<int32_t>& devices) {
  std::string list;
  for (int32_t device : devices) list += (list.empty() ? "" : ", ") + std::to_string(device);
  return list;
}

}  // namespace

Snapshot with_all_traces(Snapshot snapshot) {
  size_t devices = std::max<size_t>(snapshot.traces.size(), 1);
  for (const SnapshotSegment& segment : snapshot.segments) {
    devices = std::max(devices, static_cast<size_t>(segment.device) + 1);
  }
  snapshot.traces.resize(devices);
  return snapshot;
}

Error at_its_name(Error error, const std::string& path) {
  if (path != "-") return error;
  const auto name = [](std::string& text) {
    if (text == "/dev/stdin") text = "error.standard-input";
  };
  name(error.where);
  for (auto& value : error.values) name(value.second);
  return error;
}

Result<Snapshot> load_snapshot(const std::string& path, const SnapshotReadOptions& options) {
  Result<Snapshot> snapshot = read_snapshot_file(path == "-" ? "/dev/stdin" : path, options);
  if (snapshot) {
    add_marks_beside(path, *snapshot);
    return with_all_traces(*std::move(snapshot));
  }
  return at_its_name(std::move(snapshot.error()), path);
}

Result<std::vector<int32_t>> choose_devices(const Snapshot& snapshot, std::optional<int> wanted) {
  std::vector<int32_t> devices = devices_of(snapshot);
  if (!wanted) return devices.empty() ? std::vector<int32_t>{0} : devices;
  if (std::find(devices.begin(), devices.end(), *wanted) != devices.end()) return std::vector<int32_t>{*wanted};
  return Error{.code = "device-unknown",
               .what = "error.device-unknown",
               .where = "--device",
               .hint = devices.empty() ? "error.device-unknown.none" : "error.device-unknown.hint",
               .values = {{"device", std::to_string(*wanted)}, {"devices", list_of(devices)}}};
}

Result<int32_t> choose_device(const Snapshot& snapshot, std::optional<int> wanted) {
  OOM_TRY(const std::vector<int32_t> devices, choose_devices(snapshot, wanted));
  if (devices.size() == 1) return devices.front();
  return Error{.code = "device-ambiguous",
               .what = "error.device-ambiguous",
               .where = "--device",
               .hint = "error.device-ambiguous.hint",
               .values = {{"devices", list_of(devices)}, {"device", std::to_string(devices.front())}}};
}

Result<LoadedRecording> load_recording(const SnapshotArguments& arguments, const LoadOptions& load) {
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.rules));
  SideThread side;
  PairingAhead pairing(side);
  SnapshotReadOptions options;
  options.keeps_times = load.keeps_times;
  options.side = &side;
  options.follow = [&pairing](const Trace& trace, bool is_moving) { pairing.follow(trace, is_moving); };
  options.decoded = [&pairing] { pairing.stop(); };
  OOM_TRY(Snapshot snapshot, load_snapshot(arguments.path, options));
  OOM_TRY(const int32_t device, choose_device(snapshot, arguments.device));
  LoadedRecording recording;
  recording.snapshot = std::make_unique<Snapshot>(std::move(snapshot));
  recording.verification =
      verify(*recording.snapshot, device, {.limit_bytes = std::nullopt, .rules = rules, .in_two = load.in_two},
             pairing.finish(recording.snapshot->traces[static_cast<size_t>(device)]));
  return recording;
}

int thread_count() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

Result<std::optional<RuleSet>> choose_rules(const std::string& name) {
  if (name.empty()) return std::optional<RuleSet>{};
  const std::optional<RuleSet> rules = find_rule_set(name);
  if (rules) return rules;
  std::vector<std::string_view> names;
  std::string list;
  for (const RuleSet& set : all_rule_sets()) {
    names.push_back(set.name);
    list += (list.empty() ? "" : ", ") + std::string(set.name);
    if (set.first_release != set.last_release) {
      list += " (" + std::string(set.first_release) + " - " + std::string(set.last_release) + ")";
    }
  }
  const std::string_view near = did_you_mean(name, names);
  return Error{.code = "bad-usage",
               .what = "error.rules-unknown",
               .where = "--rules",
               .hint = near.empty() ? "error.they-are" : "error.near-of",
               .values = {{"name", name}, {"near", std::string(near)}, {"list", list}}};
}

void add_replay_caveats(const Verification& verification, Caveats& caveats) {
  add_caveats(verification.timeline.snapshot->caveats, caveats);
  add_caveats(verification.caveats, caveats);
  if (!verification.exact()) {
    caveats.push_back({.code = "replay-not-exact", .values = {}, .source = CaveatSource::model});
  }
  if (verification.timeline.starts_mid_life) {
    caveats.push_back({.code = "start-allocated-anew", .values = {}, .source = CaveatSource::model});
  }
}

std::function<void(size_t, size_t)> progress_of(const char* key, Language language, Output& output) {
  return [&output, text = say(key, language)](size_t done, size_t total) {
    output.progress().update(text, static_cast<int64_t>(done), static_cast<int64_t>(total));
  };
}

void add_caveats(const Caveats& from, Caveats& to) {
  for (const Caveat& caveat : from) {
    if (std::find(to.begin(), to.end(), caveat) == to.end()) to.push_back(caveat);
  }
}

std::optional<int64_t> cap_of(const std::optional<int64_t>& cap_bytes, const std::optional<GpuMemory>& gpu,
                              Caveats& caveats) {
  if (cap_bytes && gpu) {
    caveats.push_back(
        {.code = "cap-before-card", .values = {{"cap", format_mib(*cap_bytes)}}, .source = CaveatSource::model});
  }
  if (cap_bytes || !gpu) return cap_bytes;
  const int64_t cap = std::max<int64_t>(gpu->total_bytes - kContextBytes, 0);
  caveats.push_back(
      {.code = "context-estimated",
       .values = {{"card", gpu->name}, {"bytes", format_mib(gpu->total_bytes)}, {"context", format_mib(kContextBytes)}},
       .source = CaveatSource::model});
  return cap;
}

CapKind cap_kind_of(const std::optional<int64_t>& cap_bytes, const std::optional<GpuMemory>& gpu) {
  return gpu && !cap_bytes ? CapKind::card : CapKind::limit;
}

// A limit is tested with the size of the segment that ordinary segments would take; pages of expandable ones are mapped
// in their own size, and up to what the segment lacks.
void add_limit_caveat(const std::optional<int64_t>& limit_bytes, int64_t most_reserved, Caveats& caveats) {
  if (!limit_bytes || most_reserved <= *limit_bytes) return;
  caveats.push_back({.code = "reserved-above-limit",
                     .values = {{"reserved", format_mib(most_reserved)}, {"limit", format_mib(*limit_bytes)}},
                     .source = CaveatSource::model});
}

int64_t most_reserved(std::span<const SweepRun> runs) {
  int64_t most = 0;
  for (const SweepRun& run : runs) {
    if (run.outcome.main.completed) most = std::max(most, run.outcome.main.peak_reserved);
  }
  return most;
}

Result<ParsedSettings> read_conf(const std::string& conf, const RuleSet& rules) {
  Result<ParsedSettings> parsed = parse_allocator_settings(conf, rules.parser);
  if (!parsed) parsed.error().code = "bad-usage";
  return parsed;
}

Result<AllocatorSettings> settings_of(const std::optional<std::string>& conf, const Verification& verification,
                                      Caveats& caveats) {
  if (!conf) return verification.config.settings;
  OOM_TRY(const ParsedSettings parsed, read_conf(*conf, verification.config.rules));
  add_caveats(parsed.warnings, caveats);
  return parsed.settings;
}

}  // namespace oomscope
