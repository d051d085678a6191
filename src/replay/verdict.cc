#include "replay/verdict.h"

#include <algorithm>

#include "model/fatal_oom.h"
#include "replay/lifetimes.h"
#include "replay/packing.h"
#include "replay/packing_check.h"

namespace oomscope {

const char* name_of(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::avoidable: return "avoidable";
    case VerdictKind::unavoidable: return "unavoidable";
    case VerdictKind::undecided: return "undecided";
  }
  return "undecided";
}

Result<CheckedPacking> checked_packing(std::span<const Lifetime> rounded) {
  OOM_TRY(const Packing packing, pack_lifetimes(rounded));
  OOM_TRY([[maybe_unused]] const Done sound, check_packing(rounded, packing));
  return CheckedPacking{.height_bytes = packing.height_bytes, .method = packing.method};
}

namespace {

// What has to be served: up to a recorded failure, or, where a what-if stopped, all that the job went on to ask for.
struct Needs {
  std::vector<Lifetime> rounded;
  int64_t requested_bytes = 0;
  uint32_t event = 0;  // at which they are wanted at once
};

Result<Needs> needs_of(const Verification& verification, const FailedRequest& failed) {
  if (!failed.recorded) {
    LifetimeTable table = lifetimes_to_complete(verification);
    OOM_TRY(const Floor floor, floor_bytes(table.requested));
    // A block lives from the time behind its event on, what failed last at its event: see lifetimes.cc.
    const bool is_failure = fatal_oom(verification.timeline.trace()) == floor.at;
    return Needs{std::move(table.rounded), floor.bytes, is_failure || floor.at == 0 ? floor.at : floor.at - 1};
  }
  LifetimeTable table = lifetimes_of(verification, failed.event);
  add_request(table, verification, failed.event, failed.size_bytes);
  // What is live at that moment counts, not an earlier peak: a limit may have been set since.
  int64_t wanted = 0;
  for (const Lifetime& lifetime : table.requested) {
    if (lifetime.begin <= failed.event && lifetime.end > failed.event) wanted += lifetime.size_bytes;
  }
  return Needs{std::move(table.rounded), wanted, failed.event};
}

}  // namespace

Result<Verdict> judge(const Verification& verification, const FailedRequest& failed, const Capacity& capacity,
                      const std::vector<SweepRun>& runs) {
  Verdict verdict{.event = failed.event,
                  .verdict = VerdictKind::undecided,
                  .bytes = 0,
                  .proof = "",
                  .capacity_low_bytes = capacity.low_bytes,
                  .capacity_high_bytes = capacity.high_bytes};
  OOM_TRY(const Needs needs, needs_of(verification, failed));
  const int64_t wanted = needs.requested_bytes;
  if (wanted > capacity.high_bytes) {
    verdict.event = needs.event;  // of a what-if: where the job, had it come so far, would need more than there is
    verdict.verdict = VerdictKind::unavoidable;
    verdict.bytes = wanted - capacity.high_bytes;
    verdict.proof = kFloorProof;
    return verdict;
  }
  for (const SweepRun& run : runs) {
    const Outcome& outcome = run.outcome.main;
    const bool served = failed.recorded ? outcome.failure_served[failed.failure_index] : outcome.completed;
    // On the addresses of one driver alone, or one order of the start, it proves nothing.
    const bool everywhere = run.outcome.looked_for && run.outcome.completed_everywhere;
    if (!served || outcome.library_tries > 0 || !everywhere) continue;
    verdict.verdict = VerdictKind::avoidable;
    verdict.bytes = std::max<int64_t>(capacity.low_bytes - outcome.peak_reserved, 0);
    verdict.proof = run.conf.empty() ? std::string(kDefaultsProof) : run.conf;
    return verdict;
  }
  if (!failed.try_packing) return verdict;
  OOM_TRY(const CheckedPacking packing, checked_packing(needs.rounded));
  const bool fits = packing.height_bytes <= capacity.low_bytes;
  verdict.verdict = fits ? VerdictKind::avoidable : VerdictKind::undecided;
  verdict.bytes = fits ? capacity.low_bytes - packing.height_bytes : packing.height_bytes - capacity.low_bytes;
  verdict.proof = fits ? kPackingProof : "";
  return verdict;
}

}  // namespace oomscope
