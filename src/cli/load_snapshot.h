// What every command over a snapshot does first: read it, choose the device, find the rules that were asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/caveat.h"
#include "base/result.h"
#include "caching/rules.h"
#include "cli/options.h"
#include "cli/output.h"
#include "evidence/snapshot_reader.h"
#include "replay/sweep.h"
#include "replay/verify.h"
#include "replay/what_if.h"
#include "types/snapshot.h"

namespace oomscope {

// "-" is standard input.
[[nodiscard]] Result<Snapshot> load_snapshot(const std::string& path, const SnapshotReadOptions& options = {});

// Every device that has segments gets a trace, be it empty: commands index traces by device.
[[nodiscard]] Snapshot with_all_traces(Snapshot snapshot);

// An error about "/dev/stdin" names standard input.
[[nodiscard]] Error at_its_name(Error error, const std::string& path);

// The device that was asked for, else all that have something to say (devices_of). Never empty: device 0 stands for a
// snapshot without any. Error: device-unknown.
[[nodiscard]] Result<std::vector<int32_t>> choose_devices(const Snapshot& snapshot, std::optional<int> wanted);

// One of them, for commands that answer for one: with several and none asked for, the error device-ambiguous.
[[nodiscard]] Result<int32_t> choose_device(const Snapshot& snapshot, std::optional<int> wanted);

// A verified recording of one device with its snapshot.
struct LoadedRecording {
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<Verification> verification;
};
// Quicker, for who needs neither the statistics of the replay (see VerifyOptions) nor the events' times.
struct LoadOptions {
  bool in_two = false;
  bool keeps_times = true;
};
// Loads, chooses one device and replays it exactly.
[[nodiscard]] Result<LoadedRecording> load_recording(const SnapshotArguments& arguments, const LoadOptions& load = {});

// Threads for replays: what the machine has.
[[nodiscard]] int thread_count();

// --rules NAME; empty text: none. Error: bad-usage, with a suggestion.
[[nodiscard]] Result<std::optional<RuleSet>> choose_rules(const std::string& name);

// What the process's allocator may reserve: --cap, or the card less context and libraries, which a caveat says.
[[nodiscard]] std::optional<int64_t> cap_of(const std::optional<int64_t>& cap_bytes,
                                            const std::optional<GpuMemory>& gpu, Caveats& caveats);
// --cap is a limit, --gpu a card.
[[nodiscard]] CapKind cap_kind_of(const std::optional<int64_t>& cap_bytes, const std::optional<GpuMemory>& gpu);

// A limit that was exceeded, as expandable segments may: `most_reserved` is of a replay that completed.
void add_limit_caveat(const std::optional<int64_t>& limit_bytes, int64_t most_reserved, Caveats& caveats);
// The most of the runs that completed.
[[nodiscard]] int64_t most_reserved(std::span<const SweepRun> runs);

// --conf as a parser of these rules takes it. Error: bad-usage, with PyTorch's own words.
[[nodiscard]] Result<ParsedSettings> read_conf(const std::string& conf, const RuleSet& rules);
// The settings to replay under: --conf, else the recorded ones. Error: as read_conf.
[[nodiscard]] Result<AllocatorSettings> settings_of(const std::optional<std::string>& conf,
                                                    const Verification& verification, Caveats& caveats);

// What weakens replays of the recording under other settings.
void add_replay_caveats(const Verification& verification, Caveats& caveats);

// Draws "replaying 12 %", in the words of `key`, while replays run. `output` must outlive what is returned.
[[nodiscard]] std::function<void(size_t, size_t)> progress_of(const char* key, Language language, Output& output);

// Adds what is not there yet.
void add_caveats(const Caveats& from, Caveats& to);

}  // namespace oomscope
