#include "replay/verdict.h"

#include <algorithm>

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

Result<Verdict> judge(const Verification& verification, const FailedRequest& failed, const Capacity& capacity,
                      const std::vector<SweepRun>& runs) {
  Verdict verdict{.event = failed.event,
                  .verdict = VerdictKind::undecided,
                  .bytes = 0,
                  .proof = "",
                  .capacity_low_bytes = capacity.low_bytes,
                  .capacity_high_bytes = capacity.high_bytes};
  LifetimeTable table = lifetimes_of(verification, failed.event);
  add_request(table, verification, failed.event, failed.size_bytes);
  // What is live at that moment counts, not an earlier peak: a limit may have been set since.
  int64_t wanted = 0;
  for (const Lifetime& lifetime : table.requested) {
    if (lifetime.begin <= failed.event && lifetime.end > failed.event) wanted += lifetime.size_bytes;
  }
  if (wanted > capacity.high_bytes) {
    verdict.verdict = VerdictKind::unavoidable;
    verdict.bytes = wanted - capacity.high_bytes;
    verdict.proof = kFloorProof;
    return verdict;
  }
  for (const SweepRun& run : runs) {
    const Outcome& outcome = run.outcome.main;
    const bool served = failed.recorded ? outcome.failure_served[failed.failure_index] : outcome.completed;
    if (!served || outcome.library_tries > 0 || !(failed.recorded || run.outcome.completed_everywhere)) continue;
    verdict.verdict = VerdictKind::avoidable;
    verdict.bytes = std::max<int64_t>(capacity.low_bytes - outcome.peak_reserved, 0);
    verdict.proof = run.conf.empty() ? std::string(kDefaultsProof) : run.conf;
    return verdict;
  }
  if (!failed.try_packing) return verdict;
  OOM_TRY(const CheckedPacking packing, checked_packing(table.rounded));
  const bool fits = packing.height_bytes <= capacity.low_bytes;
  verdict.verdict = fits ? VerdictKind::avoidable : VerdictKind::undecided;
  verdict.bytes = fits ? capacity.low_bytes - packing.height_bytes : packing.height_bytes - capacity.low_bytes;
  verdict.proof = fits ? kPackingProof : "";
  return verdict;
}

}  // namespace oomscope
