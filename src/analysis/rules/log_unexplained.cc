// The GPU ran out and the figures leave more than one cause open.
#include "analysis/rules/log_rules.h"

namespace oomscope {

namespace {

// Another program than PyTorch asked the driver itself.
std::vector<Finding> find_of_program(const TextFacts& text, std::string_view program) {
  Finding finding = log_finding(
      text, text.card.tried ? "program-request" : "program-request-bare",
      {{.name = "program", .text = std::string(program), .phrases = {}}, size_value("tried", text.card.tried)});
  finding.id = "gpu-out-of-memory";
  if (program == "llama.cpp") add_changes(text, {"offload", "smaller-kv-cache", "quantised-loading"}, finding);
  if (program == "TensorRT") add_changes(text, {"smaller-batch", "smaller-input"}, finding);
  add_changes(text, {"other-gpu", "model-parallel"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace

std::vector<Finding> find_log_unexplained(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_oom) || is_oversized_request(*facts.text)) return {};
  if (const std::string_view program = program_beside_torch(*facts.text); !program.empty())
    return find_of_program(*facts.text, program);
  const TextFacts& text = *facts.text;
  if (text.card.limit && text.confidence == Confidence::high) return {};  // log_limit
  const CardFigures& card = text.card;
  const bool is_bare = !card.total || !card.free || !card.allocated || !card.unused || !card.tried;
  const bool is_impossible =
      is_bare && (card.has(Contradiction::impossible_value) || card.has(Contradiction::total_is_zero));
  const bool is_partial = is_bare && card.tried && card.total && card.free && card.allocated;
  const std::string_view id = text.failure->id;
  const bool by_allocator = is_bare && (id == "cuda.oom-cut" || id == "cuda.oom-type" || id == "cuda.async-cut" ||
                                        text.failure->family == Family::allocator);
  const bool contradicts = text.card.has(Contradiction::free_covers_request) && text.confidence == Confidence::low;
  Finding finding = log_finding(text,
                                is_impossible  ? "figures-impossible"
                                : is_partial   ? (id == "cuda.async" ? "figures-partial" : "figures-cut")
                                : by_allocator ? "no-figures-allocator"
                                : is_bare      ? "no-figures"
                                : contradicts  ? (text.card.limit ? "free-within-limit" : "free-but-refused")
                                               : "nearly-full",
                                {size_value("tried", text.card.tried), size_value("unused", text.card.unused),
                                 size_value("free", text.card.free), size_value("limit", text.card.limit),
                                 size_value("allocated", text.card.allocated), size_value("total", text.card.total)});
  finding.id = "gpu-out-of-memory";
  const bool unused_serves = text.card.tried && text.card.unused.value_or(0) >= *text.card.tried;
  if (is_bare && text.phase == Phase::unknown) {
    add_changes(text, {"smaller-batch", "other-gpu", "no-grad", "detach"}, finding);
  } else if (is_bare && text.phase == Phase::backward) {
    add_changes(text, {"smaller-batch", "detach", "checkpointing"}, finding);
  } else {
    const std::vector<std::string_view> list = remedies_of_phase(text);
    if (!list.empty()) add_changes(text, {list.front()}, finding);
    if (unused_serves) add_changes(text, {"allocator-setting"}, finding);
    if (contradicts) add_changes(text, {"raise-fraction", "other-gpu"}, finding);
    for (std::string_view remedy : list) add_changes(text, {remedy}, finding);
  }
  if (is_bare) add_changes(text, {"report-more"}, finding);  // else the figures are all there
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
