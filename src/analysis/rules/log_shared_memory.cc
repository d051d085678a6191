// /dev/shm is full.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_shared_memory(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::shm_exhausted)) return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "shared-memory");
  add_changes(text, {"larger-shm", "fewer-workers", "less-prefetch", "sharing-strategy"}, finding);
  add_listed_shm(text, finding);
  return {finding};
}

}  // namespace oomscope
