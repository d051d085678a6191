// Allocated memory rises from message to message.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_leak(const CaseFacts& facts) {
  if (facts.text == nullptr || facts.text->allocated_over_time.empty()) return {};
  const TextFacts& text = *facts.text;
  Finding finding =
      log_finding(text, "memory-grows",
                  {size_value("first", static_cast<int64_t>(text.allocated_over_time.front())),
                   size_value("last", static_cast<int64_t>(text.allocated_over_time.back())),
                   {.name = "count", .text = std::to_string(text.allocated_over_time.size()), .phrases = {}}});
  constexpr size_t kTelling = 4;
  finding.confidence = text.allocated_over_time.size() < kTelling ? Confidence::low : Confidence::medium;
  finding.bytes = static_cast<int64_t>(text.allocated_over_time.back() - text.allocated_over_time.front());
  add_changes(text, {"loss-item", "detach", "delete-references"}, finding);
  return {finding};
}

}  // namespace oomscope
