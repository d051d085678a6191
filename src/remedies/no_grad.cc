// No graph where nothing is learnt.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy no_grad() {
  return {.id = "no-grad",
          .page = "grad-in-evaluation",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets =
              [](const Circumstances&) {
                return python(R"(model.eval()
with torch.no_grad():
    for batch in validation_loader:
        outputs = model(batch))");
              },
          .saved_bytes = [](const Figures& figures) { return figures.activations; }};
}

}  // namespace oomscope
