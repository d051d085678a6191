// No file descriptor was left for a shared tensor.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_descriptors(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::fd_exhausted)) return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "descriptors");
  add_changes(text, {"raise-ulimit", "sharing-strategy", "fewer-workers"}, finding);
  return {finding};
}

}  // namespace oomscope
