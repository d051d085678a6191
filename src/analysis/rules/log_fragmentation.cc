// Much was held and not handed out, but no piece served.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_fragmentation(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom_fragmentation)) return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "fragmentation",
                                {size_value("tried", text.card.tried), size_value("unused", text.card.unused),
                                 size_value("free", text.card.free)});
  if (!text.around.expandable_segments) add_changes(text, {"allocator-setting"}, finding);
  add_changes(text, {"release-cache"}, finding);
  for (std::string_view remedy : remedies_of_phase(text)) add_changes(text, {remedy}, finding);
  add_changes(text, {"static-shapes", "reuse-buffers"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
