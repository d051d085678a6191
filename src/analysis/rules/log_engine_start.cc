// An inference engine refused to start for lack of room.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_engine_start(const CaseFacts& facts) {
  if (facts.text == nullptr || facts.text->failure == nullptr || facts.text->failure->family != Family::engine_start)
    return {};
  const TextFacts& text = *facts.text;
  const bool is_foreign = text.kind == Kind::gpu_oom_other_process;
  Finding finding = log_finding(text,
                                text.failure->id == "weights.not-enough" ? "weights-no-room"
                                : is_foreign                             ? "engine-card-taken"
                                : text.failure->id == "vllm.kv-cache"    ? "engine-cache-small"
                                : !text.failure->what.empty()            ? "engine-context"
                                                                         : "engine-no-room",
                                {size_value("tried", text.card.tried),
                                 size_value("free", text.card.free),
                                 size_value("total", text.card.total),
                                 {.name = "tokens", .text = text.failure->what, .phrases = {}}});
  if (is_foreign) add_changes(text, {"free-other-processes", "lower-limit", "other-gpu"}, finding);
  if (text.failure->id != "weights.not-enough") add_changes(text, {"smaller-kv-cache"}, finding);
  add_changes(text, {"quantised-loading", "model-parallel", "larger-gpu"}, finding);
  return {finding};
}

}  // namespace oomscope
