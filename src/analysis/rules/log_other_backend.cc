// Memory of another backend than CUDA ran out, or one block was larger than it allows.
#include "analysis/rules/log_rules.h"

namespace oomscope {

namespace {

bool is_block_limit(std::string_view message) { return message == "xpu.block-limit" || message == "mps.buffer"; }

std::vector<Finding> find(const CaseFacts& facts, bool is_block) {
  if (!failed_as(facts, Kind::other_backend_oom)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  if (is_block_limit(id) != is_block) return {};
  const bool is_mps = id.starts_with("mps");
  Finding finding = log_finding(text,
                                id == "mps.buffer" ? "buffer-limit"
                                : is_block         ? "block-limit"
                                : is_mps ? (text.card.tried && text.card.limit ? "mps-watermark" : "mps-watermark-bare")
                                : text.card.tried ? "other-backend"
                                                  : "other-backend-bare",
                                {size_value("tried", text.card.tried), size_value("limit", text.card.limit),
                                 size_value("allocated", text.card.allocated)});
  if (is_block) add_changes(text, {"process-in-chunks", "smaller-input", "smaller-batch"}, finding);
  const std::vector<std::string_view> list = remedies_of_phase(text);
  const bool in_attention = std::find(list.begin(), list.end(), "fused-attention") != list.end();
  add_changes(text, {"smaller-batch"}, finding);
  if (in_attention) add_changes(text, {"fused-attention"}, finding);
  if (is_block) return {finding};  // more memory would not help
  add_changes(text, {"smaller-model"}, finding);
  if (is_mps) add_changes(text, {"mps-watermark"}, finding);
  add_changes(text, {"smaller-input", "larger-gpu"}, finding);
  return {finding};
}

}  // namespace

std::vector<Finding> find_log_block_limit(const CaseFacts& facts) { return find(facts, /*is_block=*/true); }
std::vector<Finding> find_log_other_backend(const CaseFacts& facts) { return find(facts, /*is_block=*/false); }

}  // namespace oomscope
