// A process was ended from outside; by the kernel for lack of memory, or likely so.
#include "analysis/rules/log_rules.h"
#include "base/bytes_text.h"

namespace oomscope {

namespace {

// As the monitor that ended the process prints it.
void add_task_memory(const TextFacts& text, Finding& finding) {
  const std::optional<double>& held = text.numbers[Figure::rss];
  if (!held) return;
  const auto bytes = static_cast<int64_t>(*held);
  finding.evidence.push_back({.text = Phrase{.key = "log.task-held"}.with("bytes", format_bytes(bytes)),
                              .event = std::nullopt,
                              .site = {},
                              .bytes = bytes,
                              .log_line = std::nullopt});
}

}  // namespace

std::vector<Finding> find_log_host_killed(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::host_oom_killed)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const bool is_evicted = id == "pod.evicted";
  const bool by_program =
      id.starts_with("ray.monitor") || id == "systemd-oomd" || id.starts_with("notebook.ram") || id == "dask.nanny";
  const char* words = is_evicted                                                                ? "node-evicted"
                      : id.starts_with("notebook.died") || id.starts_with("notebook.restarted") ? "kernel-died"
                      : text.only_some_nodes                                                    ? "host-killed-nodes"
                      : id == "earlyoom"                                                        ? "host-killed-monitor"
                      : by_program                                                              ? "host-killed-program"
                      : id == "systemd.oom-kill" && text.victim == nullptr                      ? "host-killed-unit"
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
  add_task_memory(text, finding);
  if (text.victim_is_other) return {finding};  // what a job could do about its own memory is another matter
  add_changes(text, {"fewer-workers", "less-prefetch", "smaller-batch", "memory-mapped-data"}, finding);
  if (text.around.is_container || text.around.is_slurm) add_changes(text, {"raise-cgroup-limit"}, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
