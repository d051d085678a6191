// capacity: more was wanted at once than there is, and nothing that ought not to be there explains it.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

const char* id_of(Kind kind) {
  if (kind == Kind::gpu_oom_other_process) return "other-processes";
  if (kind == Kind::gpu_oom_first_alloc_or_context) return "first-allocation-or-context";
  return "capacity";
}

// The two categories that hold most.
void add_largest(Finding& finding, const RunFacts& run) {
  std::vector<size_t> order(kCategories);
  for (size_t i = 0; i < kCategories; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return run.sums.at[a] > run.sums.at[b]; });
  for (size_t i = 0; i < 3 && run.sums.at[order[i]] > 0; ++i) {
    add_evidence(
        finding,
        Phrase{.key = "cause.evidence.category"}
            .with("category", {Phrase{.key = "category." + std::string(name_of(static_cast<Category>(order[i])))}})
            .with("bytes", format_bytes(run.sums.at[order[i]])),
        std::nullopt, run.sums.at[order[i]]);
  }
}

}  // namespace

std::vector<Finding> find_capacity(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  if (run.diagnosis->kind == Kind::gpu_oom_fragmentation) return {};
  Finding finding = finding_of(run, id_of(run.diagnosis->kind));
  finding.bytes = run.wanted();
  const size_t releases = run.diagnosis->verification->replay->explicit_releases().size();
  finding.claim = run.diagnosis->sentence;
  finding.confidence = run.diagnosis->confidence;
  finding.because =
      because(run.diagnosis->kind == Kind::gpu_oom_capacity ? "nothing-else-explains" : "card-held-by-others");
  add_largest(finding, run);
  if (releases > 0) {
    add_evidence(finding, Phrase{.key = "cause.evidence.empty-cache"}.with(
                              "times", format_count(static_cast<int64_t>(releases))));
  }
  if (run.diagnosis->kind == Kind::gpu_oom_other_process ||
      run.diagnosis->kind == Kind::gpu_oom_first_alloc_or_context) {
    add_changes(finding, run, {"free-other-processes", "other-gpu"});
  } else {
    add_changes(
        finding, run,
        {"smaller-batch", "gradient-accumulation", "checkpointing", "mixed-precision", "sharding", "larger-gpu"});
  }
  return {finding};
}

}  // namespace oomscope
