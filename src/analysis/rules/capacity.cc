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
  add_categories(finding, run);
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
