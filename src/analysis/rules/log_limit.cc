// The process has a limit of its own: a memory fraction.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_limit(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom) || !facts.text->card.limit || facts.text->confidence != Confidence::high)
    return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "capacity-limit",
                                {size_value("tried", text.card.tried), size_value("limit", text.card.limit),
                                 size_value("reserved", text.card.reserved), size_value("free", text.card.free)});
  const bool fits_in_pieces = text.card.unused.value_or(0) >= text.card.tried.value_or(0);
  add_changes(text, {"raise-fraction"}, finding);
  if (fits_in_pieces) add_changes(text, {"allocator-setting"}, finding);
  for (std::string_view remedy : remedies_of_phase(text)) add_changes(text, {remedy}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
