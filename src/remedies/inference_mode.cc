// As no-grad, and views need no version counters. Since torch 1.9.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy inference_mode() {
  return {.id = "inference-mode",
          .page = "grad-in-evaluation",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && torch_is_at_least(circumstances, 1, 9);
              },
          .snippets =
              [](const Circumstances&) {
                return python(R"(with torch.inference_mode():
    outputs = model(inputs))");
              }};
}

}  // namespace oomscope
