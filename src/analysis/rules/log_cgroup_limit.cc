// The limit of a container, pod or job was reached.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_cgroup_limit(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::cgroup_or_slurm_limit)) return {};
  const TextFacts& text = *facts.text;
  Finding finding =
      log_finding(text, text.victim != nullptr ? "cgroup-limit-named" : "cgroup-limit", victim_values(text));
  finding.id = "cgroup-limit";
  if (text.phase == Phase::saving) add_changes(text, {"sharded-saving"}, finding);
  add_changes(text, {"raise-cgroup-limit"}, finding);
  add_kernel_table(text, finding);
  if (text.victim_is_other) return {finding};
  add_changes(text, {"fewer-workers", "less-prefetch", "no-pinning", "memory-mapped-data", "smaller-batch"}, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
