// Nothing was held yet: the card was full, or the context did not fit.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_first_allocation(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom_first_alloc_or_context)) return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "card-full-before-start");
  add_changes(text, {"free-other-processes", "other-gpu", "share-card", "lazy-modules"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
