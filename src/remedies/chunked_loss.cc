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
                const std::string options = torch_is_at_least(circumstances, 1, 11) ? ", use_reentrant=False" : "";
                return Recipe{.imports = {"from torch.utils.checkpoint import checkpoint"},
                              .lines = {R"(def loss_of_part(hidden, targets):
    return cross_entropy(head(hidden).float(), targets, reduction="sum")
loss = 0
for parts in zip(hidden.chunk(8), targets.chunk(8)):
    part = checkpoint(loss_of_part, *parts)" +
                                        options +
                                        R"()
    loss = loss + part / targets.numel())"}};
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.logits ? std::optional<int64_t>(*figures.logits / 8 * 7) : std::nullopt;
              }};
}

}  // namespace oomscope
