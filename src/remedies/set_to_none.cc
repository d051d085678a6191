// Gradients as None: their memory is free between steps, and from the first forward of the next one.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy set_to_none() {
  return {.id = "set-to-none",
          .page = "capacity",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && circumstances.phase != Phase::backward &&
                       circumstances.phase != Phase::optimizer_step && torch_is_at_least(circumstances, 1, 7);
              },
          .recipe =
              [](const Circumstances& circumstances) {
                // In a loop that stands already; one that is written anew has it.
                if (circumstances.variant == "set-to-none" && circumstances.framework.empty()) {
                  return Recipe{.clears_gradients = true};
                }
                return Recipe{.lines = {torch_is_at_least(circumstances, 2, 0)
                                            ? "optimizer.zero_grad()  # before evaluation and saving too"
                                            : "optimizer.zero_grad(set_to_none=True)"}};
              },
          .saved_bytes = [](const Figures& figures) { return figures.gradients; }};
}

}  // namespace oomscope
