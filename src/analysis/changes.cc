// The changes: the recording replayed under other settings, the bounds that no setting can beat, and the verdicts.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/why.h"
#include "base/bytes_text.h"
#include "replay/lifetimes.h"

namespace oomscope {
namespace {

// Each verdict walks all allocations; a library that tries a hundred plans is not worth more than this.
constexpr size_t kMostVerdicts = 100;
constexpr int64_t kVerdictBudget = 20'000'000;

Result<std::vector<Verdict>> find_verdicts(const Diagnosis& diagnosis, const RequestStream& requests,
                                           const std::vector<SweepRun>& runs) {
  std::vector<Verdict> verdicts;
  if (!diagnosis.instant.failed) return verdicts;
  const int64_t events = static_cast<int64_t>(requests.kind.size()) + 1;
  const size_t affordable = std::clamp<size_t>(static_cast<size_t>(kVerdictBudget / events), 1, kMostVerdicts);
  const size_t count = requests.failures.size();
  for (size_t i = count > affordable ? count - affordable : 0; i < count; ++i) {
    const RequestStream::Failure& failure = requests.failures[i];
    const FailedRequest failed{.event = failure.event,
                               .size_bytes = failure.size,
                               .failure_index = i,
                               .recorded = true,
                               .try_packing = i + 1 == count};
    OOM_TRY(const Verdict verdict, judge(*diagnosis.verification, failed, diagnosis.capacity, runs));
    verdicts.push_back(verdict);
  }
  return verdicts;
}

std::string failed_sentence(const Changes& changes) {
  const Verdict& verdict = changes.verdicts.back();
  switch (verdict.verdict) {
    case VerdictKind::unavoidable:
      return fmt::format("Unavoidable by settings: at least {} less must be live at once.",
                         format_bytes(verdict.bytes));
    case VerdictKind::avoidable:
      if (verdict.proof == "packing") {
        return fmt::format("Avoidable only by placement: none of {} settings serves it, a packing does.",
                           changes.runs.size());
      }
      return fmt::format("Avoidable: replayed, it fits in {} with {}.", format_mib(*changes.cap_bytes), verdict.proof);
    case VerdictKind::undecided:
      return fmt::format("Undecided: no setting serves it, the best placement is {} too large.",
                         format_bytes(verdict.bytes));
  }
  return "";
}

std::string peak_sentence(const Changes& changes) {
  const SweepRun& best = changes.runs.front();
  const int64_t saved = changes.recorded_reserved_bytes - best.outcome.main.peak_reserved;
  if (saved <= 0) return "No other setting reserves less.";
  return fmt::format("Replayed, it reserves {} less with {}.", format_bytes(saved),
                     best.conf.empty() ? "PyTorch's defaults" : best.conf);
}

}  // namespace

Result<Changes> find_changes(const Diagnosis& diagnosis, const WhyOptions& options) {
  const Verification& verification = *diagnosis.verification;
  Changes changes;
  changes.recorded_reserved_bytes = verification.replay->peak_reserved().bytes;
  if (verification.timeline.trace().size_events() == 0) return changes;
  if (diagnosis.instant.failed) {
    changes.cap_bytes = diagnosis.capacity.low_bytes;
  } else if (options.cap_bytes) {
    changes.cap_bytes = options.cap_bytes;
  }
  const RequestStream requests = requests_of(verification);
  SweepOptions sweep_options{.cap_bytes = changes.cap_bytes, .threads = options.threads, .progress = options.progress};
  changes.runs = sweep(requests, verification.config.rules, sweep_options);

  LifetimeTable table = lifetimes_of(verification);
  if (diagnosis.instant.failed) {
    add_request(table, verification, diagnosis.instant.event, diagnosis.instant.request_bytes);
  }
  OOM_TRY(const Floor pages, page_floor_bytes(table.rounded, table.page_bytes));
  changes.page_floor_bytes = pages.bytes;
  OOM_TRY(const CheckedPacking packing, checked_packing(table.rounded));
  changes.packing_bytes = packing.height_bytes;
  OOM_TRY(changes.verdicts, find_verdicts(diagnosis, requests, changes.runs));
  changes.sentence = diagnosis.instant.failed ? failed_sentence(changes) : peak_sentence(changes);
  return changes;
}

}  // namespace oomscope
