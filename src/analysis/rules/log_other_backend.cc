// Memory of another backend than CUDA ran out, or one block was larger than it allows.
#include <array>

#include "analysis/rules/log_rules.h"

namespace oomscope {

namespace {

struct Program {
  std::string_view id;  // of its messages
  std::string_view name;
};
constexpr std::array kPrograms = {Program{"jax.", "JAX"},
                                  Program{"xla.", "XLA (JAX or TensorFlow)"},
                                  Program{"tf.", "TensorFlow"},
                                  Program{"paddle.", "PaddlePaddle"},
                                  Program{"mxnet.", "MXNet"},
                                  Program{"onnx.", "ONNX Runtime"},
                                  Program{"mindspore.", "MindSpore"},
                                  Program{"cupy.", "CuPy"},
                                  Program{"rmm.", "RAPIDS (RMM)"}};

// Another framework than PyTorch, or empty.
std::string_view framework_of(std::string_view message) {
  const auto found = std::find_if(kPrograms.begin(), kPrograms.end(),
                                  [&](const Program& program) { return message.starts_with(program.id); });
  return found == kPrograms.end() ? std::string_view{} : found->name;
}

// Of a framework beside PyTorch: the message's own figures and those of the lines beside it.
Finding finding_of_framework(const TextFacts& text, std::string_view framework) {
  const auto figure = [&](Figure each) { return whole_bytes(text.numbers[each]); };
  const bool is_sum = figure(Figure::used) && figure(Figure::total);
  const bool has_none = std::none_of(text.numbers.values.begin(), text.numbers.values.end(),
                                     [](const std::optional<double>& value) { return value.has_value(); });
  Finding finding = log_finding(text,
                                is_sum                  ? "framework-sum"
                                : figure(Figure::tried) ? "framework-request"
                                : has_none              ? "framework-bare"
                                                        : "framework",
                                {{.name = "framework", .text = std::string(framework), .phrases = {}},
                                 size_value("tried", figure(Figure::tried)),
                                 size_value("used", figure(Figure::used)),
                                 size_value("total", figure(Figure::total))});
  add_changes(text, {"smaller-batch", "smaller-model", "smaller-input"}, finding);
  for (Change& change : finding.changes) change.commands.clear();  // they are PyTorch's
  return finding;
}

bool is_block_limit(std::string_view message) { return message == "xpu.block-limit" || message == "mps.buffer"; }

std::vector<Finding> find_backend(const CaseFacts& facts, bool is_block) {
  if (!failed_as(facts, Kind::other_backend_oom)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  if (is_block_limit(id) != is_block) return {};
  if (const std::string_view framework = framework_of(id); !framework.empty())
    return {finding_of_framework(text, framework)};
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

std::vector<Finding> find_log_block_limit(const CaseFacts& facts) { return find_backend(facts, /*is_block=*/true); }
std::vector<Finding> find_log_other_backend(const CaseFacts& facts) { return find_backend(facts, /*is_block=*/false); }

}  // namespace oomscope
