// oomscope verify SNAPSHOT: does our model reproduce this recording exactly. Not exact is exit code 1.
#include "replay/verify.h"

#include <algorithm>

#include "base/bytes_text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "cli/stats_file.h"
#include "types/recording_call.h"

namespace oomscope {
namespace {

Result<Done> finish(const RawOptions& raw, Options& options) {
  VerifyArguments& verify = options.verify;
  verify.snapshot.path = raw.path;
  verify.snapshot.rules = raw.rules;
  verify.stats_path = raw.stats;
  if (raw.has_conf) verify.conf = raw.conf;
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, verify.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, verify.snapshot.language));
  return read_device(raw.device, verify.snapshot.device);
}

// What all devices of the file come to.
struct Totals {
  std::vector<std::unique_ptr<Verification>> devices;
  int64_t events = 0;
  int64_t alloc_total = 0;
  int64_t alloc_exact = 0;
  int64_t driver_total = 0;
  int64_t driver_exact = 0;
  bool final_state_equal = true;
  bool final_state_checked = true;
  StatsComparison stats;
  std::vector<std::vector<std::string_view>> other_rules;  // by device: rule sets that replay it as well
  const Verification* first_differing = nullptr;
  Caveats caveats;

  [[nodiscard]] bool exact() const {
    return std::all_of(devices.begin(), devices.end(), [](const auto& device) { return device->exact(); }) &&
           stats.differences.empty();
  }
};

void add_device(std::unique_ptr<Verification> device, Totals& totals) {
  const ReplayCounts& counts = device->replay->counts();
  totals.events += static_cast<int64_t>(device->timeline.trace().size_events());
  totals.alloc_total += counts.alloc_total;
  totals.alloc_exact += counts.alloc_exact;
  totals.driver_total += counts.driver_total;
  totals.driver_exact += counts.driver_exact;
  totals.final_state_checked &= device->final_state_checked;
  totals.final_state_equal &= device->final_state_equal;
  add_caveats(device->caveats, totals.caveats);
  if (totals.first_differing == nullptr && device->replay->first_difference()) totals.first_differing = device.get();
  totals.other_rules.push_back(device->exact() ? equally_exact_rules(*device) : std::vector<std::string_view>());
  totals.devices.push_back(std::move(device));
}

// Statistics count from the start of the process, so a window of it cannot be compared.
Result<Done> compare_stats(const std::string& path, Totals& totals) {
  if (path.empty()) return Done{};
  const Verification& device = *totals.devices.front();
  if (totals.devices.size() > 1) {
    return Error{.code = "bad-usage",
                 .what = "error.stats-of-one-device",
                 .where = "--stats",
                 .hint = "error.stats-of-one-device.hint"};
  }
  if (!device.timeline.start.empty() && !device.replay->from_the_beginning()) {
    totals.caveats.push_back({.code = "stats-not-comparable", .values = {}, .source = CaveatSource::recording});
    return Done{};
  }
  OOM_TRY(totals.stats, compare_stats_file(path, device.replay->allocator().stats(), device.config.settings));
  return Done{};
}

nlohmann::ordered_json limit_json(const Verification& device) {
  if (!device.limit) return nullptr;
  return {{"low", device.limit->low_bytes}, {"high", device.limit->high_bytes}};
}

nlohmann::ordered_json difference_json(const Totals& totals) {
  if (totals.first_differing == nullptr) return nullptr;
  const Difference& difference = *totals.first_differing->replay->first_difference();
  return {{"device", totals.first_differing->timeline.device},
          {"event", difference.event},
          {"what", say(difference.what, difference.values, Language::english)}};
}

nlohmann::ordered_json payload_of(const Totals& totals) {
  const Verification& first = *totals.devices.front();
  nlohmann::ordered_json json;
  json["schema"] = "oomscope.verify/1";
  const bool nothing = totals.alloc_total + totals.driver_total == 0;
  json["exact"] = nothing ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(totals.exact());
  json["rules"] = nothing ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(first.config.rules.name);
  json["limit_bytes"] = totals.devices.size() == 1 ? limit_json(first) : nlohmann::ordered_json(nullptr);
  json["events"] = totals.events;
  json["alloc_total"] = totals.alloc_total;
  json["alloc_exact"] = totals.alloc_exact;
  json["driver_events_total"] = totals.driver_total;
  json["driver_events_exact"] = totals.driver_exact;
  json["final_state_equal"] =
      totals.final_state_checked ? nlohmann::ordered_json(totals.final_state_equal) : nlohmann::ordered_json(nullptr);
  json["stats_total"] = totals.stats.total;
  json["stats_equal"] = totals.stats.equal;
  json["stats_differing"] = nlohmann::ordered_json::array();
  for (const StatsDifference& difference : totals.stats.differences) json["stats_differing"].push_back(difference.name);
  json["first_difference"] = difference_json(totals);
  json["devices"] = nlohmann::ordered_json::array();
  for (const auto& device : totals.devices) {
    json["devices"].push_back({{"device", device->timeline.device},
                               {"exact", device->exact()},
                               {"rules", device->config.rules.name},
                               {"conf", to_conf_string(device->config.settings, device->config.rules.parser)},
                               {"limit_bytes", limit_json(*device)},
                               {"equally_exact_rules", totals.other_rules[json["devices"].size()]}});
  }
  json["caveats"] = caveats_json(totals.caveats);
  return json;
}

std::string verify_word(std::string_view id, Language language) { return say("verify." + std::string(id), language); }

std::string headline(const Totals& totals, Language language) {
  if (totals.alloc_total + totals.driver_total == 0) return verify_word("nothing", language);
  return verify_word(totals.exact() ? "exact" : "not-exact", language);
}

Phrase limit_phrase(const Verification& device) {
  if (!device.limit) return Phrase{.key = "verify.no-limit"};
  const LimitRange& limit = *device.limit;
  if (limit.low_bytes == limit.high_bytes)
    return Phrase{.key = "verify.limit"}.with("bytes", format_mib(limit.low_bytes));
  return Phrase{.key = "verify.limit-range"}
      .with("low", format_mib(limit.low_bytes))
      .with("high", format_mib(limit.high_bytes));
}

std::string device_text(const Verification& device, Language language) {
  const std::string conf = to_conf_string(device.config.settings, device.config.rules.parser);
  return say(Phrase{.key = "verify.device"}
                 .with("device", std::to_string(device.timeline.device))
                 .with("releases", Phrase{.key = "rules." + std::string(device.config.rules.name)})
                 .with("conf", conf.empty() ? verify_word("default-settings", language) : conf)
                 .with("limit", limit_phrase(device)),
             language);
}

Table counts_table(const Totals& totals, Language language) {
  Table table{.title = "",
              .columns = {{.header = verify_word("compared", language)},
                          {.header = verify_word("recorded", language), .align = Align::right},
                          {.header = verify_word("exact-column", language), .align = Align::right}},
              .rows = {{.cells = {verify_word("allocations", language), format_count(totals.alloc_total),
                                  format_count(totals.alloc_exact)}},
                       {.cells = {verify_word("driver", language), format_count(totals.driver_total),
                                  format_count(totals.driver_exact)}}},
              .total = {},
              .note = ""};
  if (totals.final_state_checked) {
    table.rows.push_back({.cells = {verify_word("final", language), "",
                                    verify_word(totals.final_state_equal ? "equal" : "not-equal", language)}});
  }
  if (totals.stats.total > 0) {
    table.rows.push_back(
        {.cells = {"memory_stats", format_count(totals.stats.total), format_count(totals.stats.equal)}});
  }
  return table;
}

// A recording without a telling tie is replayed by several rule sets alike: then it proves none of them.
std::string rules_note(const std::vector<std::string_view>& others, Language language) {
  if (others.empty()) return verify_word("rules-told", language);
  std::string names;
  for (std::string_view name : others) names += (names.empty() ? "" : " ") + std::string(name);
  return say(Phrase{.key = "verify.rules-alike"}.with("rules", names), language);
}

void add_report(const Totals& totals, Language language, Output& output) {
  output.add_sentence(headline(totals, language), totals.exact() ? Style::green : Style::red);
  output.add({.body = counts_table(totals, language)});
  size_t next = 0;
  for (const auto& device : totals.devices) {
    if (device->timeline.trace().size_events() == 0) {  // tells neither rules nor limit
      ++next;
      continue;
    }
    output.add_sentence(device_text(*device, language));
    if (device->exact())
      output.add_sentence(rules_note(totals.other_rules[next++], language));
    else
      ++next;
  }
  if (totals.first_differing != nullptr) {
    const Difference& difference = *totals.first_differing->replay->first_difference();
    output.add_sentence(say(Phrase{.key = "verify.first-difference"}
                                .with("event", format_count(difference.event))
                                .with("what", say(difference.what, difference.values, language)),
                            language));
  }
  constexpr size_t kMostShown = 10;
  Lines stats{.title = verify_word("stats", language), .lines = {}};
  for (const StatsDifference& difference : totals.stats.differences) {
    if (stats.lines.size() == kMostShown) break;
    stats.lines.push_back(say(Phrase{.key = "verify.stat"}
                                  .with("name", difference.name)
                                  .with("recorded", format_count(difference.recorded))
                                  .with("model", format_count(difference.model)),
                              language));
  }
  const size_t others = totals.stats.differences.size() - stats.lines.size();
  if (others > 0) {
    stats.lines.push_back(
        say(Phrase{.key = "show.others"}.with("count", format_count(static_cast<int64_t>(others))), language));
  }
  if (!stats.lines.empty()) output.add({.body = stats});
  output.add({.body = caveat_list(totals.caveats, language)});
}

Result<int> run(const Options& options, Output& output) {
  const VerifyArguments& arguments = options.verify;
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.snapshot.rules));
  if (arguments.conf) {
    OOM_TRY([[maybe_unused]] const ParsedSettings parsed,
            read_conf(*arguments.conf, rules.value_or(default_rule_set())));
  }
  OOM_TRY(const Snapshot snapshot, load_snapshot(arguments.snapshot.path));
  OOM_TRY(const std::vector<int32_t> devices, choose_devices(snapshot, arguments.snapshot.device));
  Totals totals;
  add_caveats(snapshot.caveats, totals.caveats);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] < 0 || static_cast<size_t>(devices[i]) >= snapshot.traces.size()) continue;
    output.progress().update(say("progress.replaying", arguments.snapshot.language), static_cast<int64_t>(i),
                             static_cast<int64_t>(devices.size()));
    add_device(
        verify(snapshot, devices[i], {.limit_bytes = arguments.cap_bytes, .rules = rules, .conf = arguments.conf}),
        totals);
  }
  if (totals.devices.empty()) {
    return Error{.code = "snapshot-without-trace",
                 .what = "error.snapshot-without-trace",
                 .where = arguments.snapshot.path,
                 .hint = "error.no-history.hint",
                 .values = {{"call", recording_call(snapshot)}}};
  }
  OOM_TRY([[maybe_unused]] const Done compared, compare_stats(arguments.stats_path, totals));
  if (!snapshot.complete || totals.alloc_total + totals.driver_total == 0) output.set_incomplete();
  add_report(totals, arguments.snapshot.language, output);
  output.payload() = payload_of(totals);
  return totals.exact() ? 0 : 1;
}

}  // namespace

Command verify_command() {
  return Command{
      .name = "verify",
      .summary = "does the model reproduce this recording exactly (exit 1 if not)",
      .examples = {"oomscope verify oom.pickle", "oomscope verify oom.pickle --rules torch-2.6 --json"},
      .options = {{"SNAPSHOT", "", "a snapshot; - is standard input", &RawOptions::path},
                  {"--cap", "SIZE", "the limit the job ran under; else inferred", &RawOptions::cap},
                  {"--conf", "S", "the settings it ran under, where the file has none (torch before 2.4)",
                   &RawOptions::conf},
                  {"--stats", "FILE", "a JSON file with torch.cuda.memory_stats() to compare", &RawOptions::stats},
                  {"--device", "N", "one device only; else all are summed", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
