// A worker of a DataLoader was killed.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_loader_worker(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::dataloader_worker_killed)) return {};
  const TextFacts& text = *facts.text;
  const std::string& signal = text.failure->what;
  Finding finding = log_finding(text,
                                signal.empty()           ? "loader-worker-unsaid"
                                : signal == "Terminated" ? "loader-worker-terminated"
                                                         : "loader-worker",
                                {{.name = "signal", .text = text.failure->what, .phrases = {}}});
  finding.id = "loader-worker";
  add_changes(text, {"fewer-workers", "smaller-batch", "more-host-memory", "less-prefetch", "memory-mapped-data"},
              finding);
  add_kernel_table(text, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
