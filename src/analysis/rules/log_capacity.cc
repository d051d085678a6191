// More was wanted at once than there is.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_capacity(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom_capacity)) return {};
  const TextFacts& text = *facts.text;
  if (is_oversized_request(text) || text.failure->family == Family::engine_start) return {};
  const bool spilled = text.card.has(Contradiction::allocated_above_total);
  // What is held and what is free cover the request together: joined they would serve, and a setting may join them.
  const bool would_join = !spilled && text.card.pieces_cover_request();
  const bool lies_in_pools = !spilled && text.card.pools_cover_request();
  Finding finding = log_finding(text,
                                spilled         ? "spilled"
                                : would_join    ? "capacity-in-pieces"
                                : lies_in_pools ? "capacity-in-pools"
                                                : "capacity",
                                {size_value("pools", text.card.free_in_pools), size_value("tried", text.card.tried),
                                 size_value("allocated", text.card.allocated), size_value("unused", text.card.unused),
                                 size_value("free", text.card.free), size_value("total", text.card.total)});
  if (spilled) add_changes(text, {"quantised-loading", "smaller-batch", "offload"}, finding);
  const std::vector<std::string_view> list = remedies_of_phase(text);
  if (would_join) {
    finding.id = "capacity";
    add_changes(text, {list.front(), "allocator-setting"}, finding);
  }
  if (lies_in_pools) {
    finding.id = "capacity";
    add_changes(text, {list.front(), "pool-limit"}, finding);
  }
  for (std::string_view remedy : list) add_changes(text, {remedy}, finding);
  // What is in force already is left out; then the larger changes are what remains.
  constexpr size_t kFew = 3;
  if (finding.changes.size() < std::min(kFew, list.size()))
    add_changes(text, {"lighter-optimizer", "offload", "model-parallel", "smaller-model", "larger-gpu"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
