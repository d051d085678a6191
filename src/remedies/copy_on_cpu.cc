// Averages, best models and deep copies belong in host memory.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy copy_on_cpu() {
  return {.id = "copy-on-cpu",
          .page = "copy-of-weights",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets =
              [](const Circumstances&) {
                return python(
                    R"(best = {name: tensor.detach().cpu().clone()
        for name, tensor in model.state_dict().items()})");
              },
          .saved_bytes = [](const Figures& figures) { return figures.parameters; }};
}

}  // namespace oomscope
