// Why did it run out, and what would have made it fit? For one device of one snapshot.
//
// In two stages, so that the first sentence need not wait for the replays: diagnose() tells from the exact replay what
// failed and where the memory was; find_changes() replays the recording under other settings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/free_space.h"
#include "base/caveat.h"
#include "base/result.h"
#include "plan/advice.h"
#include "replay/sweep.h"
#include "replay/verdict.h"
#include "replay/verify.h"
#include "types/confidence.h"
#include "types/kind.h"
#include "types/phrase.h"

namespace oomscope {

struct WhyOptions {
  std::optional<int64_t> cap_bytes;   // the limit the job ran under, if known
  std::optional<int64_t> card_bytes;  // the whole card, if known
  std::optional<int64_t> room_bytes =
      std::nullopt;  // on a card that is asked about: what one process's allocator gets of it
  // On the card at the failure, as NVML said then: this process with its context, and all others.
  std::optional<int64_t> own_bytes;
  std::optional<int64_t> others_bytes;
  std::optional<RuleSet> rules;
  int threads = 1;
  std::function<void(size_t done, size_t total)> progress;
  size_t curve_points = 0;            // of the replays' reserved bytes; 0: no curves
  std::function<void()> beside = {};  // work that waits for no replay: done by the same threads meanwhile
};

// One row of the balance. Rows sum to the balance's total.
struct BalanceRow {
  Phrase name;
  std::optional<int64_t> bytes;  // empty: unknown, and not in the total
  Phrase source;                 // where the number is from
  bool is_outside = false;       // not of this process's allocator: free on the card, context, others
};

// The moment that the diagnosis is about: the request that failed, or the peak.
struct Instant {
  bool failed = false;
  uint32_t event = 0;
  int64_t request_bytes = 0;      // rounded; 0 at a peak
  int64_t alloc_bytes = 0;        // what the driver was asked for
  int64_t device_free_bytes = 0;  // of an oom entry
  StackId stack = StackId::none;
  int64_t requested_bytes = 0;  // live then, as requested
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t active_bytes = 0;  // allocated and waiting for other streams
};

struct Diagnosis {
  std::unique_ptr<Verification> verification;
  Kind kind = Kind::gpu_oom;
  std::vector<Kind> also;  // what else is true of it
  Confidence confidence = Confidence::high;
  Instant instant;
  Capacity capacity;                  // at a failure; at a peak zero unless a limit is known
  FreeSpace free_space;               // at the instant
  PinnedSpace pinned;                 // at the instant
  std::vector<uint32_t> pinning;      // allocations whose blocks pin it
  int64_t floor_bytes = 0;            // most requested bytes ever live at once, the failed request included
  int64_t missing_bytes = 0;          // capacity: at least so much was missing,
  int64_t missing_at_most_bytes = 0;  // and at most so much, where the limit is known only as a range
  std::vector<BalanceRow> balance;
  int64_t balance_total_bytes = 0;
  Phrase sentence;  // why the request failed, or what sets the peak
  Phrase trust;     // how far the recording can be trusted, one line
  Caveats caveats;
};

// The event from which the limit of the failure holds; 0: from the start. More was reserved than it allows, so it was
// set behind that.
[[nodiscard]] uint32_t limit_begins(const Diagnosis& diagnosis);

// So many of the best runs, and of the proposals among all, are shown and have the range of their result looked for.
inline constexpr size_t kMostRuns = 12;
inline constexpr size_t kMostProposals = 2;

struct Changes {
  std::optional<int64_t> cap_bytes;  // what the runs were given
  CapKind cap_kind = CapKind::limit;
  std::vector<SweepRun> runs;           // best first
  std::vector<RuleSet> rules;           // all that replay the recording alike, those of the diagnosis first
  std::vector<bool> accepted;           // one a run: each of those rules knows its settings
  bool at_high_end = false;             // of the limit's range: at the low end nothing fits
  int64_t recorded_reserved_bytes = 0;  // of a replay under the recorded settings, from the same start as the runs
  bool recorded_completes = true;       // that replay
  bool runs_prove = true;               // false: what failed is served there too, see fails_as_recorded()
  int64_t page_floor_bytes = 0;
  int64_t packing_bytes = 0;
  std::vector<Verdict> verdicts;         // one a failed request that counts
  std::vector<MeasureOutcome> measures;  // what the program may do, each replayed; empty for very long recordings
  bool measures_have_cap = false;        // whether `fits` says anything: not where the limit was set late
  StepSeries step;                       // memory over the step with the most live bytes
  std::optional<StepSeries> step_after;  // the same with `step_measure`
  Phrase step_measure;                   // the cheapest measure that fits; where none does, the one that saves most
  std::vector<uint32_t> curve_events;    // at which the points of the runs' curves begin
  Caveats caveats;                       // of the replays under other settings
  Phrase sentence;                       // what would have made it fit, or how much less would do
};

// Of several devices the one whose request failed last; else the one that holds most. A caveat names the others.
// `devices` are those of the snapshot, at least one.
[[nodiscard]] int32_t device_to_explain(const Snapshot& snapshot, const std::vector<int32_t>& devices,
                                        Caveats& caveats);
// Error: gpu-too-small. A file without history gets a diagnosis of its segments.
[[nodiscard]] Result<Diagnosis> diagnose(const Snapshot& snapshot, int32_t device, const WhyOptions& options);
[[nodiscard]] Result<Changes> find_changes(const Diagnosis& diagnosis, const WhyOptions& options);
// The rules that replay the recording alike, those of the diagnosis first. Costs a replay each.
[[nodiscard]] std::vector<RuleSet> rules_not_told_apart(const Verification& verification);
// Runs worth proposing, best first: those that fit where something failed, else those that reserve less than the
// recording did; under settings that every torch which may have written the recording takes.
[[nodiscard]] std::vector<const SweepRun*> proposals(const Diagnosis& diagnosis, const Changes& changes);

}  // namespace oomscope
