// More was wanted at once than there is.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_capacity(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom_capacity)) return {};
  const TextFacts& text = *facts.text;
  if (is_oversized_request(text) || text.failure->family == Family::engine_start) return {};
  const bool spilled = text.card.has(Contradiction::allocated_above_total);
  Finding finding = log_finding(text, spilled ? "spilled" : "capacity",
                                {size_value("tried", text.card.tried), size_value("allocated", text.card.allocated),
                                 size_value("unused", text.card.unused), size_value("free", text.card.free),
                                 size_value("total", text.card.total)});
  if (spilled) add_changes(text, {"quantised-loading", "smaller-batch", "offload"}, finding);
  for (std::string_view remedy : remedies_of_phase(text)) add_changes(text, {remedy}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
