// Flash and memory-efficient kernels never store the s × s weights.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy fused_attention() {
  return {.id = "fused-attention",
          .page = "attention-matrix",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets =
              [](const Circumstances& circumstances) {
                const bool is_back = circumstances.variant == "eager-attention";
                if (circumstances.framework == "transformers") {
                  return python("model = AutoModelForCausalLM.from_pretrained(name, attn_implementation=\"" +
                                std::string(is_back ? "eager" : "sdpa") + "\")");
                }
                if (is_back) {
                  return python(
                      "weights = (q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).softmax(dim=-1)\nout = weights @ v");
                }
                return torch_is_at_least(circumstances, 2, 0)
                           ? python("out = torch.nn.functional.scaled_dot_product_attention(q, k, v)")
                           : python(
                                 "from xformers.ops import memory_efficient_attention\nout = "
                                 "memory_efficient_attention(q, k, v)");
              },
          .saved_bytes = [](const Figures& figures) { return figures.attention_matrix; },
          .text =
              [](const Circumstances& circumstances) {
                return Phrase{.key = torch_is_at_least(circumstances, 2, 0) ? "remedy.fused-attention.text"
                                                                            : "remedy.fused-attention.old"};
              }};
}

}  // namespace oomscope
