// Much was held and not handed out, but no piece served.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_fragmentation(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom_fragmentation)) return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "fragmentation",
                                {size_value("tried", text.card.tried), size_value("unused", text.card.unused),
                                 size_value("free", text.card.free)});
  const std::vector<std::string_view> list = remedies_of_phase(text);
  add_changes(text, {"allocator-setting", "static-shapes", list.front(), "reuse-buffers"}, finding);
  for (std::string_view remedy : list) add_changes(text, {remedy}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
