// Several ranks of one job failed on the same card.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_share_card(const CaseFacts& facts) {
  if (facts.text == nullptr) return {};
  const TextFacts& text = *facts.text;
  int same = 0;
  const TextMessage* first = nullptr;
  for (const RankFailure& each : text.ranks) {
    if (each.message->family != Family::allocator || !each.message->gpu || !each.rank) continue;
    if (first == nullptr) first = each.message;
    const bool is_foreign = each.kind == Kind::gpu_oom_other_process;
    same += is_foreign && each.message->gpu == first->gpu ? 1 : 0;
  }
  if (same < 2) return {};
  Finding finding = log_finding(text, "ranks-share-card",
                                {{.name = "ranks", .text = std::to_string(same), .phrases = {}},
                                 {.name = "gpu", .text = std::to_string(*first->gpu), .phrases = {}}});
  finding.confidence = Confidence::medium;
  add_changes(text, {"share-card", "load-on-cpu"}, finding);
  return {finding};
}

}  // namespace oomscope
