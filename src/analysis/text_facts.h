// What logs establish: the message that tells of the failure, its kind, how sure that is, and its figures reconciled.
// Rules of src/analysis/rules/ make findings of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/text_survival.h"
#include "analysis/why.h"
#include "base/caveat.h"
#include "model/card_figures.h"
#include "types/confidence.h"
#include "types/kind.h"
#include "types/phase.h"
#include "types/phrase.h"
#include "types/text_evidence.h"

namespace oomscope {

// The first failure of one rank, or of one log where no rank is named.
struct RankFailure {
  std::optional<int> rank;
  std::optional<int> node;
  size_t log = 0;
  const TextMessage* message = nullptr;
  Kind kind = Kind::gpu_oom;
};

// A figure of memory in use, of a message or of what the program prints itself.
struct GrowthPoint {
  double allocated_bytes = 0;
  const TextMessage* message = nullptr;
};

struct TextFacts {
  std::vector<const TextEvidence*> logs;
  const TextMessage* failure = nullptr;  // null: nothing failed, or the run outlived it
  size_t failure_log = 0;
  bool is_last = false;  // of several failures with more allocated each time; else it is the first of the strongest
  Kind kind = Kind::no_failure;
  std::vector<Kind> also;
  Confidence confidence = Confidence::low;
  Phase phase = Phase::unknown;
  std::optional<int> step;      // of the job, as far as progress lines tell
  bool after_training = false;  // progress of training was seen before
  bool is_first = false;        // as in TextPhase
  CardFigures card;
  PrintedFigures numbers;  // of the failure, with what other messages of the same kind add
  std::vector<BalanceRow> balance;
  int64_t balance_total_bytes = 0;
  Surroundings around;
  std::vector<RankFailure> ranks;  // in the order of their failures, as far as that is known
  bool order_is_known = false;
  std::vector<GrowthPoint> growth;      // where they rise
  const TextMessage* victim = nullptr;  // the kernel's line that names the process it ended, or null
  bool victim_is_other = false;         // that process is no part of a job in Python
  bool only_some_nodes = false;         // the kernel looked at the memory of some NUMA nodes alone
  std::string cgroup;                   // whose limit it was, as the kernel names it
  int64_t failures = 0;                 // messages of the failure's family
  std::vector<Survival> survived;       // messages of failures behind which the run went on
  // Of those the strongest; null: there is none.
  [[nodiscard]] const Survival* outlived() const;
  Caveats caveats;
};

// The kernel refuses a mapping for want of bytes or of mappings; of the two, a tiny one or one of the many tensors that
// processes share speaks for the latter.
[[nodiscard]] bool ran_out_of_mappings(const TextFacts& facts);

// The card of the message in the listing; without an index there, the only card. Null: none.
[[nodiscard]] const ListedGpu* listed_card(const TextFacts& facts);
// The listing has far less of the card in use than the message: it was read when the process was gone.
[[nodiscard]] bool listing_is_later(const TextFacts& facts);
// No listed card is as small as that of the message: it is a slice of one (MIG, vGPU).
[[nodiscard]] bool is_slice(const TextFacts& facts);

// df shows most of /dev/shm empty.
[[nodiscard]] bool shm_has_room(const TextFacts& facts);

// What ended the process is not told: its parent found it gone.
[[nodiscard]] bool names_no_signal(const TextMessage& message);

// The logs must outlive the facts.
[[nodiscard]] TextFacts find_text_facts(std::span<const TextEvidence> logs);

// Whether the log's failure is the verdict beside a snapshot of this kind: the snapshot is exact about its own failure,
// but it knows nothing of the host, and a snapshot without a failure nothing of the end.
[[nodiscard]] bool log_agrees_with_snapshot(const TextFacts& facts, Kind snapshot);
[[nodiscard]] bool log_outweighs_snapshot(const TextFacts& facts, Kind snapshot);

// What the program was doing by its frames and its progress; see text_phase.cc.
struct TextPhase {
  Phase phase = Phase::unknown;
  std::optional<int> step;
  bool after_training = false;
  bool is_first = false;  // forward, backward or step: the first one of the job
};
[[nodiscard]] TextPhase phase_of(const TextMessage& message);

}  // namespace oomscope
