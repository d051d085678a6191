// The engine against real PyTorch: every recording is replayed and compared, without being told its memory limit; the
// default recordings predict what the others measured. What the numbers mean: docs/fidelity.md.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "caching/stats_names.h"
#include "replay/smallest_cap.h"
#include "replay/verify.h"
#include "replay/what_if.h"
#include "support/recordings.h"

namespace oomscope {
namespace {

constexpr double kMiB = 1048576.0;

#define SKIP_WITHOUT(folder)                  \
  if (!std::filesystem::is_directory(folder)) \
  GTEST_SKIP() << "SKIPPED: no recordings in " << (folder) << "; set OOMSCOPE_DATA to the folder that holds them"

std::filesystem::path h200() { return large_recordings() / "h200"; }
std::filesystem::path public_snapshots() { return large_recordings() / "public-snapshots"; }

struct Totals {
  int64_t files = 0;
  int64_t without_history = 0;
  int64_t allocs = 0;
  int64_t allocs_exact = 0;
  int64_t driver_events = 0;
  int64_t driver_events_exact = 0;
  int64_t final_states = 0;
  int64_t mid_life = 0;
  int64_t stats = 0;
  int64_t stats_equal = 0;
  int64_t limits = 0;
  void print(const char* what) const {
    std::printf("%s: %" PRId64 " files (%" PRId64 " without history, %" PRId64 " from mid-life); allocs %" PRId64
                " of %" PRId64 "; driver events %" PRId64 " of %" PRId64 "; final states %" PRId64
                "; statistics %" PRId64 " of %" PRId64 "; limits inferred %" PRId64 "\n",
                what, files, without_history, mid_life, allocs_exact, allocs, driver_events_exact, driver_events,
                final_states, stats_equal, stats, limits);
  }
};

void compare_stats(const Recording& recording, const Verification& v, Totals& totals) {
  if (!recording.is_final || !recording.result.contains("stats") || !v.replay->from_the_beginning()) return;
  std::map<std::string, int64_t> ours;
  for (const auto& [name, value] : flat_stats(v.replay->allocator().stats(), v.config.settings)) ours[name] = value;
  for (const auto& [name, value] : recording.result["stats"].items()) {
    totals.stats += 1;
    if (ours.count(name) == 0) {
      ADD_FAILURE() << recording.name << ": no statistic " << name;
      continue;
    }
    if (ours[name] == value.get<int64_t>()) {
      totals.stats_equal += 1;
    } else if (name != "num_sync_all_streams") {
      ADD_FAILURE() << recording.name << ": " << name << " is " << ours[name] << " instead of " << value;
    }
  }
}

void compare_limit(const Recording& recording, const Verification& v, Totals& totals) {
  if (!v.limit) return;
  totals.limits += 1;
  EXPECT_LE(v.limit->low_bytes, v.limit->high_bytes) << recording.name;
  if (const std::optional<int64_t> cap = recording.cap_bytes()) {
    EXPECT_LE(v.limit->low_bytes, *cap) << recording.name;
    EXPECT_GE(v.limit->high_bytes, *cap) << recording.name;
  }
}

void expect_exact(const Recording& recording, Totals& totals) {
  const std::unique_ptr<Snapshot> snapshot = read_recording(recording.path);
  if (snapshot == nullptr) return;
  totals.files += 1;
  bool history = false;
  bool mid_life = false;
  for (int32_t device : devices_of(*snapshot)) {
    if (static_cast<size_t>(device) >= snapshot->traces.size()) continue;
    const bool has_events = snapshot->traces[static_cast<size_t>(device)].size_events() > 0;
    history = history || has_events;
    const std::unique_ptr<Verification> v = verify(*snapshot, device);
    const ReplayCounts& counts = v->replay->counts();
    totals.allocs += counts.alloc_total;
    totals.allocs_exact += counts.alloc_exact;
    totals.driver_events += counts.driver_total;
    totals.driver_events_exact += counts.driver_exact;
    mid_life = mid_life || (has_events && v->timeline.starts_mid_life);
    EXPECT_EQ(counts.alloc_exact, counts.alloc_total) << recording.name;
    EXPECT_EQ(counts.driver_exact, counts.driver_total) << recording.name;
    EXPECT_EQ(v->replay->differences(), 0) << recording.name << ": event " << v->replay->first_difference()->event
                                           << ": " << v->replay->first_difference()->what;
    EXPECT_TRUE(v->final_state_checked && v->final_state_equal)
        << recording.name << (v->caveats.empty() ? "" : ": " + v->caveats.back().code);
    totals.final_states += v->final_state_checked && v->final_state_equal ? 1 : 0;
    EXPECT_EQ(v->replay->allocator().check_invariants(), "") << recording.name;
    compare_stats(recording, *v, totals);
    compare_limit(recording, *v, totals);
  }
  totals.without_history += history ? 0 : 1;
  totals.mid_life += mid_life ? 1 : 0;
}

TEST(SameSettings, EveryRecordingOfTheRepositoryReplaysExactly) {
  Totals totals;
  for (const Recording& recording : recordings_below(small_recordings())) expect_exact(recording, totals);
  totals.print("tests/data/recordings");
  EXPECT_GE(totals.files, 10);
}

TEST(SameSettings, EveryH200RecordingReplaysExactly) {
  SKIP_WITHOUT(h200());
  Totals totals;
  for (const Recording& recording : recordings_below(h200())) expect_exact(recording, totals);
  totals.print("h200");
  EXPECT_GE(totals.files, 192);
}

TEST(SameSettings, EveryPublicSnapshotReplaysExactly) {
  SKIP_WITHOUT(public_snapshots());
  Totals totals;
  for (const Recording& recording : recordings_below(public_snapshots())) expect_exact(recording, totals);
  totals.print("public snapshots");
  EXPECT_GE(totals.files, 12);
}

// Which recordings notice that the engine was changed: none, as it is. tools/mutants.py changes it, and asks all of
// them. Only the rules of the release that wrote them are tried.
TEST(Mutants, UnchangedEngineIsNoticedByNoRecording) {
  const bool changed = std::getenv("OOMSCOPE_MUTANTS") != nullptr;
  const std::filesystem::path root = changed && std::filesystem::is_directory(h200()) ? h200() : small_recordings();
  int64_t noticed = 0;
  for (const Recording& recording : recordings_below(root)) {
    const std::unique_ptr<Snapshot> snapshot = read_recording(recording.path);
    if (snapshot == nullptr) continue;
    for (int32_t device : devices_of(*snapshot)) {
      const std::unique_ptr<Verification> v =
          verify(*snapshot, device, {.limit_bytes = {}, .rules = default_rule_set()});
      bool equal = v->exact();
      if (recording.is_final && recording.result.contains("stats") && v->replay->from_the_beginning()) {
        for (const auto& [name, value] : flat_stats(v->replay->allocator().stats(), v->config.settings)) {
          equal = equal && (name == "num_sync_all_streams" || recording.result["stats"].value(name, value) == value);
        }
      }
      if (equal) continue;
      noticed += 1;
      std::printf("NOTICED %s\n", recording.name.c_str());
      std::fflush(stdout);
      break;
    }
  }
  if (!changed) {
    EXPECT_EQ(noticed, 0);
  }
}

// A recording that was cut while it ran: its first part alone, whose final segments nobody wrote down.
TEST(SameSettings, FirstPartOfARecordingReplaysWhereverItIsCut) {
  const std::filesystem::path root = std::filesystem::is_directory(h200()) ? h200() : small_recordings();
  int64_t cuts = 0;
  for (const Recording& recording : recordings_below(root)) {
    const std::unique_ptr<Snapshot> snapshot = read_recording(recording.path);
    if (snapshot == nullptr) continue;
    for (int32_t device : devices_of(*snapshot)) {
      if (static_cast<size_t>(device) >= snapshot->traces.size()) continue;
      const std::unique_ptr<Verification> whole = verify(*snapshot, device);
      const uint32_t events = static_cast<uint32_t>(whole->timeline.trace().size_events());
      if (events > 200000) continue;  // one of a million events: nine replays of it show nothing new
      for (uint32_t tenth = 1; tenth < 10; ++tenth) {
        ExactReplay replay(whole->timeline, whole->config);
        replay.run(events / 10 * tenth);
        EXPECT_EQ(replay.differences(), 0) << recording.name << " cut at " << tenth << "0 %";
        EXPECT_EQ(replay.allocator().check_invariants(), "") << recording.name;
        cuts += 1;
      }
    }
  }
  std::printf("first parts: %" PRId64 " cuts\n", cuts);
}

// --- other settings, predicted from the default recording ----------------------------------------------------------

struct Measured {
  std::string name;
  std::string conf;
  std::optional<int64_t> cap;
  bool completed;
  int64_t reserved;
  int64_t allocated;
  int64_t device_allocs;
  int64_t retries;
};

Measured measured(const Recording& recording) {
  const nlohmann::json& stats = recording.result["stats"];
  return {.name = recording.name,
          .conf = recording.conf(),
          .cap = recording.cap_bytes(),
          .completed = recording.result.value("ok", false),
          .reserved = stats["reserved_bytes.all.peak"],
          .allocated = stats["allocated_bytes.all.peak"],
          .device_allocs = stats["num_device_alloc"],
          .retries = stats["num_alloc_retries"]};
}

AllocatorSettings settings_from(const std::string& conf) {
  const Result<ParsedSettings> parsed = parse_allocator_settings(conf, SettingsParser::unified);
  EXPECT_TRUE(parsed.has_value()) << conf;
  return parsed ? parsed->settings : AllocatorSettings{};
}

// The requests of WORKLOAD/default, found once.
class DefaultRuns {
 public:
  const RequestStream* requests(const std::string& workload) {
    auto [entry, made] = runs_.try_emplace(workload);
    if (!made) return entry->second ? &*entry->second : nullptr;
    const std::filesystem::path path = h200() / workload / "default" / "snapshot.pickle.zst";
    if (!std::filesystem::exists(path)) return nullptr;
    const std::unique_ptr<Snapshot> snapshot = read_recording(path);
    if (snapshot == nullptr) return nullptr;
    entry->second = requests_of(*verify(*snapshot, devices_of(*snapshot)[0]));
    return &*entry->second;
  }

 private:
  std::map<std::string, std::optional<RequestStream>> runs_;
};

struct Score {
  int64_t runs = 0;
  int64_t reserved_exact = 0;
  int64_t all_exact = 0;
  int64_t retries_exact = 0;
  int64_t in_range = 0;
  double error_sum = 0;
  double error_worst = 0;
  void add(const Measured& real, const OutcomeRange& range) {
    const Outcome& ours = range.main;
    const double error =
        100.0 * std::abs(static_cast<double>(ours.peak_reserved - real.reserved)) / static_cast<double>(real.reserved);
    runs += 1;
    reserved_exact += ours.peak_reserved == real.reserved ? 1 : 0;
    retries_exact += ours.num_alloc_retries == real.retries ? 1 : 0;
    in_range += range.peak_reserved_low <= real.reserved && real.reserved <= range.peak_reserved_high ? 1 : 0;
    error_sum += error;
    error_worst = std::max(error_worst, error);
    const bool all = ours.peak_reserved == real.reserved && ours.peak_allocated == real.allocated &&
                     ours.num_device_alloc == real.device_allocs && ours.num_alloc_retries == real.retries;
    all_exact += all ? 1 : 0;
    if (!all) {
      std::printf("  %s: reserved %" PRId64 " (real %" PRId64 ", range %" PRId64 "..%" PRId64 "), allocated %" PRId64
                  " (%" PRId64 "), device allocs %" PRId64 " (%" PRId64 "), retries %" PRId64 " (%" PRId64 ")\n",
                  real.name.c_str(), ours.peak_reserved, real.reserved, range.peak_reserved_low,
                  range.peak_reserved_high, ours.peak_allocated, real.allocated, ours.num_device_alloc,
                  real.device_allocs, ours.num_alloc_retries, real.retries);
    }
  }
  void print(const char* what) const {
    std::printf("%s: %" PRId64 " runs; peak reserved exact %" PRId64 ", in range %" PRId64 ", all four exact %" PRId64
                ", retries exact %" PRId64 "; error of peak reserved mean %.2f %%, worst %.1f %%\n",
                what, runs, reserved_exact, in_range, all_exact, retries_exact,
                runs == 0 ? 0.0 : error_sum / static_cast<double>(runs), error_worst);
  }
};

TEST(OtherSettings, ArePredictedFromTheDefaultRecording) {
  SKIP_WITHOUT(h200());
  DefaultRuns defaults;
  Score expandable;
  Score others;
  int64_t failures = 0;
  int64_t failures_predicted = 0;
  for (const Recording& recording : recordings_below(h200())) {
    // WORKLOAD/CONFIG/snapshot, also below capfit/ and capfail/.
    std::string name = recording.name;
    for (const char* folder : {"capfit/", "capfail/"}) {
      if (name.rfind(folder, 0) == 0) name = name.substr(std::string(folder).size());
    }
    const size_t slash = name.find('/');
    const std::string workload = name.substr(0, slash);
    if (!recording.is_final || recording.name == workload + "/default/snapshot") continue;
    if (name.find('/', slash + 1) != name.rfind('/')) continue;
    if (!recording.result.contains("stats")) continue;
    const RequestStream* requests = defaults.requests(workload);
    if (requests == nullptr) continue;
    const Measured real = measured(recording);
    const AllocatorSettings settings = settings_from(real.conf);
    const OutcomeRange range = replay_range(
        *requests,
        {.rules = default_rule_set(), .settings = settings, .cap_bytes = real.cap, .policy = AddressPolicy::chunks});
    if (!real.completed) {
      failures += 1;
      failures_predicted += range.main.completed ? 0 : 1;
      continue;
    }
    EXPECT_TRUE(range.main.completed) << recording.name;
    (settings.expandable_segments ? expandable : others).add(real, range);
  }
  expandable.print("expandable segments");
  others.print("other settings");
  std::printf("failed under their cap: %" PRId64 " of %" PRId64 " predicted\n", failures_predicted, failures);
  EXPECT_EQ(expandable.all_exact, expandable.runs);
  EXPECT_EQ(expandable.in_range, expandable.runs);
  EXPECT_GE(others.retries_exact, others.runs - 1);  // one run takes other cuDNN plans after an OOM
  EXPECT_EQ(others.reserved_exact, others.runs);
  EXPECT_GE(others.all_exact, others.runs - 1);
  EXPECT_EQ(failures_predicted, failures);
}

TEST(SmallestCapOfTheCard, IsPredictedFromTheDefaultRecording) {
  SKIP_WITHOUT(h200());
  DefaultRuns defaults;
  const nlohmann::json caps = read_json(h200() / "caps.json");
  int64_t probes = 0;
  int64_t probes_right = 0;
  double error_sum = 0;
  double error_worst = 0;
  int64_t reacting = 0;
  int64_t compared = 0;
  for (const auto& [name, cap] : caps.items()) {
    const std::string workload = name.substr(0, name.find('/'));
    const std::string config = name.substr(name.find('/') + 1);
    const RequestStream* requests = defaults.requests(workload);
    ASSERT_NE(requests, nullptr) << name;
    const nlohmann::json result = read_json(h200() / "capfit" / workload / config / "result.json");
    const WhatIf question{.rules = default_rule_set(),
                          .settings = settings_from(result.value("conf", "")),
                          .cap_bytes = std::nullopt,
                          .policy = AddressPolicy::chunks};
    int64_t right = 0;
    for (const nlohmann::json& probe : cap["log"]) {
      WhatIf at = question;
      at.cap_bytes = static_cast<int64_t>(probe[0].get<double>() * kMiB);
      right += replay_what_if(*requests, at).completed == probe[1].get<bool>() ? 1 : 0;
    }
    const int64_t tries = static_cast<int64_t>(cap["log"].size());
    probes += tries;
    probes_right += right;
    const std::optional<SmallestCap> ours = smallest_cap(*requests, question, {});
    ASSERT_TRUE(ours.has_value()) << name;
    const double fits = cap["fits_at_mib"].get<double>();
    const double fails = cap["fails_at_mib"].get<double>();
    const double smallest = static_cast<double>(ours->smallest_cap_bytes) / kMiB;
    const double first = static_cast<double>(ours->first_fit_bytes) / kMiB;
    // Distance of the smallest cap from the measured bracket; 0 inside it.
    const double error = 100.0 * std::max({0.0, smallest - fits, fails - smallest}) / fits;
    std::printf("  %s: measured %.1f..%.1f, ours %.0f..%.0f MiB, %" PRId64 " of %" PRId64
                " probes right, off by %.2f %%\n",
                name.c_str(), fails, fits, first, smallest, right, tries, error);
    if (workload == "unet_var") {  // cuDNN takes other plans when memory is short
      reacting += 1;
      EXPECT_LE(error, 14.0) << name;
      continue;
    }
    compared += 1;
    error_sum += error;
    error_worst = std::max(error_worst, error);
  }
  std::printf("smallest cap: %" PRId64 " of %" PRId64 " capped runs predicted; %" PRId64
              " brackets off by %.2f %% on average, %.2f %% at worst; %" PRId64 " more react to an OOM\n",
              probes_right, probes, compared, error_sum / static_cast<double>(compared), error_worst, reacting);
  EXPECT_LE(error_worst, 1.1);
}

}  // namespace
}  // namespace oomscope
