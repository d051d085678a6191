// none: nothing failed and nothing looks wrong: what sets the peak, and what would have to change first to fit less.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// Bytes live at the end of each step, and when the recording ends.
std::vector<int64_t> live_at_step_ends(const RunFacts& run) {
  std::vector<int64_t> at_ends;
  int64_t live = 0;
  for (const Allocation& allocation : run.timeline().allocations)
    live += allocation.begin == kNoEvent ? allocation.requested : 0;
  uint32_t event = 0;
  for (uint32_t end : run.structure.step_ends) {
    for (; event < end && event < run.trace().size_events(); ++event) {
      const uint32_t id = run.timeline().allocation_of[event];
      if (id == kNoAllocation) continue;
      const Allocation& allocation = run.timeline().allocations[id];
      if (allocation.begin == event) live += allocation.requested;
      if (allocation.free_requested == event) live -= allocation.requested;
    }
    at_ends.push_back(live);
  }
  return at_ends;
}

// What is left from step to step. The second step has what the first made for good: gradients, the optimizer's state.
void add_growth(Finding& finding, const RunFacts& run) {
  std::vector<int64_t> live = live_at_step_ends(run);
  if (live.size() < 4) return;
  live.pop_back();                      // the end of the program belongs to its last step
  constexpr int64_t kTrifle = 1 << 20;  // a scalar a step is no growth worth telling
  const int64_t first = live[1] - live[0];
  const int64_t later = live.back() - live[1];
  const bool grew_first = first >= kTrifle && !run.timeline().starts_mid_life;
  const char* key = later >= kTrifle ? "grew" : grew_first ? "grew-in-first" : "grew-not";
  add_evidence(finding,
               Phrase{.key = "cause.evidence." + std::string(key)}
                   .with("first", format_bytes(std::max<int64_t>(first, 0)))
                   .with("later", format_bytes(later))
                   .with("bytes", format_bytes(live[1]))
                   .with("last", format_bytes(live.back()))
                   .with("step", std::to_string(live.size())),
               std::nullopt, std::max<int64_t>(live.back() - live[0], 0));
}

}  // namespace

std::vector<Finding> find_none(const CaseFacts& facts) {
  if (facts.run == nullptr || facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  Finding finding = finding_of(run, "none");
  finding.bytes = run.peak_bytes;
  size_t largest = 0;
  for (size_t i = 1; i < kCategories; ++i) {
    if (run.sums.at[i] > run.sums.at[largest]) largest = i;
  }
  const Category category = static_cast<Category>(largest);
  finding.claim = run.diagnosis->sentence;
  finding.confidence = run.diagnosis->confidence;
  const bool survived = run.diagnosis->verification->refused_requests > 0;
  finding.because = because(!run.snapshot->complete ? "file-cut" : survived ? "failures-survived" : "no-failure");
  if (run.sums.at[largest] == 0) return {finding};
  add_evidence(finding,
               Phrase{.key = "cause.evidence.largest"}
                   .with("category", {Phrase{.key = "category." + std::string(name_of(category))}})
                   .with("bytes", format_bytes(run.sums.at[largest])),
               std::nullopt, run.sums.at[largest]);
  add_growth(finding, run);
  switch (category) {
    case Category::activation:
      if (run.structure.trains) {
        add_changes(finding, run, std::nullopt,
                    {"checkpointing", "mixed-precision", "gradient-accumulation", "smaller-batch"});
      } else {
        if (run.pass != kNoPass && run.kept_graph(run.pass)) add_changes(finding, run, std::nullopt, {"no-grad"});
        add_changes(finding, run, std::nullopt, {"smaller-batch"});
      }
      break;
    case Category::logits:
      add_changes(finding, run, std::nullopt, {"chunked-loss", "mixed-precision", "smaller-batch"});
      break;
    case Category::optimizer_state:
      add_changes(finding, run, std::nullopt, {"lighter-optimizer", "sharding", "offload"});
      break;
    case Category::parameter:
      if (!run.structure.trains) add_changes(finding, run, std::nullopt, {"quantised-loading"});
      add_changes(finding, run, std::nullopt, {"sharding", "offload"});
      break;
    case Category::gradient: add_changes(finding, run, std::nullopt, {"set-to-none", "sharding"}); break;
    case Category::temporary:
      if (run.phase == Phase::optimizer_step) add_changes(finding, run, std::nullopt, {"fused-optimizer"});
      break;
    default: break;
  }
  return {finding};
}

}  // namespace oomscope
