// A process was ended from outside; by the kernel for lack of memory, or likely so.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_host_killed(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::host_oom_killed)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const bool is_evicted = id == "pod.evicted";
  const char* words = is_evicted                                                                ? "node-evicted"
                      : id.starts_with("notebook.died") || id.starts_with("notebook.restarted") ? "kernel-died"
                      : text.only_some_nodes                                                    ? "host-killed-nodes"
                      : id == "earlyoom"                                                        ? "host-killed-monitor"
                      : text.victim_is_other                                                    ? "host-killed-other"
                      : text.victim != nullptr                                                  ? "host-killed-named"
                      : text.failure->strength >= 4 || text.failure->family == Family::kernel   ? "host-killed"
                      : names_no_signal(*text.failure)                                          ? "vanished"
                                                                                                : "killed-unexplained";
  Finding finding = log_finding(text, words, victim_values(text));
  finding.id = "host-killed";
  const bool asks_for_table = finding.claim.key == "log.host-killed-named.claim";
  if (asks_for_table && !text.around.host_processes.empty()) finding.surer = {};
  if (is_evicted || text.only_some_nodes) add_changes(text, {"raise-cgroup-limit"}, finding);
  if (text.phase == Phase::saving) add_changes(text, {"sharded-saving"}, finding);
  add_changes(text, {"more-host-memory"}, finding);
  add_kernel_table(text, finding);
  if (text.victim_is_other) return {finding};  // what a job could do about its own memory is another matter
  add_changes(text, {"fewer-workers", "less-prefetch", "smaller-batch", "memory-mapped-data"}, finding);
  if (text.around.is_container || text.around.is_slurm) add_changes(text, {"raise-cgroup-limit"}, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
