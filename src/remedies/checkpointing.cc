// Activation checkpointing: keep the inputs of blocks alone and recompute the rest in backward.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy checkpointing() {
  return {.id = "checkpointing",
          .page = "capacity",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_training_case(circumstances) &&
                       is_among(circumstances.phase, {Phase::forward, Phase::loss, Phase::backward});
              },
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "transformers")
                  return python(R"(model.gradient_checkpointing_enable()
model.config.use_cache = False)");
                if (circumstances.framework == "lightning")
                  return python(R"(from torch.utils.checkpoint import checkpoint
x = checkpoint(block, x, use_reentrant=False)  # in forward, for each block)");
                return python(
                    torch_is_at_least(circumstances, 1, 11)
                        ? "from torch.utils.checkpoint import checkpoint\nx = checkpoint(block, x, use_reentrant=False)"
                        : "from torch.utils.checkpoint import checkpoint\nx = checkpoint(block, x)");
              }};
}

}  // namespace oomscope
