// One request that is most of the card, or more than it.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_oversized_request(const CaseFacts& facts) {
  if (facts.text == nullptr || facts.text->failure == nullptr || !is_oversized_request(*facts.text)) return {};
  const TextFacts& text = *facts.text;
  if (text.failure->family != Family::allocator) return {};
  Finding finding = log_finding(text, text.card.total.value_or(0) > 0 ? "oversized-request" : "oversized-request-bare",
                                {size_value("tried", text.card.tried), size_value("total", text.card.total)});
  finding.id = "oversized-request";
  add_changes(text, {"smaller-input", "check-data", "fused-attention", "smaller-batch", "process-in-chunks"}, finding);
  return {finding};
}

}  // namespace oomscope
