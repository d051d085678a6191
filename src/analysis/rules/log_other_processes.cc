// Memory outside this process is what is missing.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_other_processes(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom_other_process)) return {};
  const TextFacts& text = *facts.text;
  if (text.failure->family == Family::engine_start) return {};
  const bool is_listed = !text.card.others.empty();
  const bool is_bare = !text.card.total;
  Finding finding = log_finding(text,
                                is_bare     ? "card-full"
                                : is_listed ? "other-memory-on-card"
                                            : "other-memory-likely",
                                {size_value("tried", text.card.tried), size_value("others", text.card.foreign()),
                                 size_value("reserved", text.card.reserved), size_value("total", text.card.total)});
  finding.id = "other-memory-on-card";
  // Its own ranks are no leftovers to be ended.
  if (!find_log_share_card(facts).empty()) add_changes(text, {"share-card"}, finding);
  add_changes(text, {"free-other-processes", "other-gpu"}, finding);
  if (!is_listed) add_changes(text, {"smaller-batch"}, finding);  // what nobody lists may be this process's own
  add_changes(text, {"share-card", "lower-limit", "smaller-batch"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
