// capacity: more was wanted at once than there is, and nothing that ought not to be there explains it.
// other-memory-on-card, card-full-before-start: others hold the card.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

Finding failure_of_card(const RunFacts& run, std::string_view id, std::string_view why) {
  Finding finding = finding_of(run, id);
  finding.bytes = run.wanted();
  finding.claim = run.diagnosis->sentence;
  finding.confidence = run.diagnosis->confidence;
  finding.because = because(why);
  add_categories(finding, run);
  const size_t releases = run.diagnosis->verification->replay->explicit_releases().size();
  if (releases > 0) {
    add_evidence(finding, Phrase{.key = "cause.evidence.empty-cache"}.with(
                              "times", format_count(static_cast<int64_t>(releases))));
  }
  return finding;
}

std::vector<Finding> held_by_others(const CaseFacts& facts, Kind kind, std::string_view id) {
  if (facts.run == nullptr || !facts.run->failed() || facts.run->diagnosis->kind != kind) return {};
  Finding finding = failure_of_card(*facts.run, id, "card-held-by-others");
  add_changes(finding, *facts.run);
  return {finding};
}

}  // namespace

std::vector<Finding> find_other_memory(const CaseFacts& facts) {
  return held_by_others(facts, Kind::gpu_oom_other_process, "other-memory-on-card");
}

std::vector<Finding> find_card_full(const CaseFacts& facts) {
  return held_by_others(facts, Kind::gpu_oom_first_alloc_or_context, "card-full-before-start");
}

std::vector<Finding> find_capacity(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const Kind kind = run.diagnosis->kind;
  if (kind == Kind::gpu_oom_fragmentation || kind == Kind::gpu_oom_other_process ||
      kind == Kind::gpu_oom_first_alloc_or_context) {
    return {};
  }
  Finding finding = failure_of_card(run, "capacity",
                                    kind == Kind::gpu_oom_capacity ? "nothing-else-explains" : "card-held-by-others");
  if (run.structure.passes.empty() &&
      run.phase == Phase::load) {  // the weights alone are too much: no batch is at fault
    add_changes(finding, run, std::nullopt,
                {"quantised-loading", "sharding", "model-parallel", "offload", "smaller-model", "larger-gpu"});
  } else {
    add_changes(
        finding, run, std::nullopt,
        {"smaller-batch", "gradient-accumulation", "checkpointing", "mixed-precision", "sharding", "larger-gpu"});
  }
  return {finding};
}

}  // namespace oomscope
