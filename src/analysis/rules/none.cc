// none: nothing failed and nothing looks wrong: what sets the peak, and what would have to change first to fit less.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

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
  finding.because = because("no-failure");
  if (run.sums.at[largest] == 0) return {finding};
  add_evidence(finding,
               Phrase{.key = "cause.evidence.largest"}
                   .with("category", {Phrase{.key = "category." + std::string(name_of(category))}})
                   .with("bytes", format_bytes(run.sums.at[largest])),
               std::nullopt, run.sums.at[largest]);
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
