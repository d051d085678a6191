// Logits are tokens × vocabulary, several times over while the loss is computed.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy chunked_loss() {
  return {.id = "chunked-loss",
          .page = "logits",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_training_case(circumstances) &&
                       is_among(circumstances.phase, {Phase::forward, Phase::loss, Phase::backward});
              },
          .recipe =
              [](const Circumstances& circumstances) {
                // Liger's kernel never makes the logits at all.
                if (circumstances.framework == "transformers") return Recipe{.arguments = {"use_liger_kernel=True"}};
                return Recipe{.imports = {"from torch.utils.checkpoint import checkpoint"}, .lines = {R"(loss = 0
for hidden_part, target_part in zip(hidden.chunk(8), targets.chunk(8)):
    part = checkpoint(lambda h, t: cross_entropy(head(h).float(), t, reduction="sum"), hidden_part, target_part,
                      use_reentrant=False)
    loss = loss + part / targets.numel())"}};
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.logits ? std::optional<int64_t>(*figures.logits / 8 * 7) : std::nullopt;
              }};
}

}  // namespace oomscope
