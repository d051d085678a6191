// Losses that are summed for one backward keep all their graphs until then; gradients add up by themselves.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy backward_each_part() {
  return {.id = "backward-each-part",
          .page = "graph-kept",
          .effect = Effect::transform,
          .applies = is_training_case,
          .snippets = [](const Circumstances& circumstances) {
            return python(std::string(R"(for part in parts:
    (loss_of(model, part) / len(parts)).backward()
optimizer.step()
optimizer.zero_grad()") + (torch_is_at_least(circumstances, 1, 7) ? "set_to_none=True)" : ")"));
          }};
}

}  // namespace oomscope
