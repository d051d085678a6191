// A sum of losses keeps the graph of every step.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy loss_item() {
  return {.id = "loss-item",
          .page = "graph-kept",
          .effect = Effect::transform,
          .applies = is_training_case,
          .snippets = [](const Circumstances&) {
            return python(R"(total_loss += loss.item()  # or: total_loss += loss.detach())");
          }};
}

}  // namespace oomscope
