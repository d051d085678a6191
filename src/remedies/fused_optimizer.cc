// The foreach step makes temporaries of the size of all parameters; the fused one none.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy fused_optimizer() {
  return {.id = "fused-optimizer",
          .page = "optimizer-state",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                // Before 2.0 no step was a foreach one unless asked for.
                const bool may_be_foreach = torch_is_at_least(circumstances, 2, 0) || !circumstances.variant.empty();
                return is_training_case(circumstances) && is_among(circumstances.phase, {Phase::optimizer_step}) &&
                       may_be_foreach;
              },
          .recipe =
              [](const Circumstances& circumstances) {
                const std::string start = optimizer_class(circumstances, "(model.parameters(), ") + ", ";
                // SGD has a fused step since 2.3.
                const bool has_fused = torch_is_at_least(circumstances, 2, circumstances.has_momentum_alone ? 3 : 0);
                if (circumstances.variant == "foreach-off" || !has_fused) {
                  return Recipe{.optimizer = start + "foreach=False)"};
                }
                if (circumstances.variant == "foreach-on") return Recipe{.optimizer = start + "foreach=True)"};
                if (circumstances.has_momentum_alone) return Recipe{.optimizer = start + "fused=True)"};
                if (circumstances.framework == "transformers")
                  return Recipe{.arguments = {R"(optim="adamw_torch_fused")"}};
                if (circumstances.framework == "deepspeed") {
                  return Recipe{.config = R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})"};
                }
                return Recipe{.optimizer = start + "fused=True)"};
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.step_temporaries ? figures.step_temporaries : figures.parameters;
              }};
}

}  // namespace oomscope
