// MultiheadAttention returns its weights by default, and has to make them for that.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy need_weights_false() {
  return {.id = "need-weights-false",
          .page = "attention-matrix",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) { return python(R"(out, _ = attention(x, x, x, need_weights=False))"); },
          .saved_bytes = [](const Figures& figures) { return figures.attention_matrix; }};
}

}  // namespace oomscope
