// A process was ended from outside; by the kernel for lack of memory, or likely so.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_host_killed(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::host_oom_killed)) return {};
  const TextFacts& text = *facts.text;
  const bool is_said = text.failure->strength >= 4;
  Finding finding = log_finding(text, is_said ? "host-killed" : "killed-unexplained");
  finding.id = "host-killed";
  add_changes(text, {"more-host-memory", "fewer-workers", "less-prefetch", "smaller-batch", "memory-mapped-data"},
              finding);
  if (text.around.is_container || text.around.is_slurm) add_changes(text, {"raise-cgroup-limit"}, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
