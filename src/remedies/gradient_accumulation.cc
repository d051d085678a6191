// Micro-batches: the same mathematics a step, fewer samples at once.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

constexpr int64_t kUsualParts = 4;

// The number where the batch is known, else how it follows from it.
std::string micro_batch_of(const Circumstances& circumstances, int64_t parts) {
  if (!circumstances.batch_size) return "batch_size // " + std::to_string(parts);
  return std::to_string((*circumstances.batch_size + parts - 1) / parts);
}

}  // namespace

Remedy gradient_accumulation() {
  return {.id = "gradient-accumulation",
          .page = "larger-batch",
          .effect = Effect::transform,
          .applies = is_training_case,
          .recipe =
              [](const Circumstances& circumstances) {
                const int64_t parts = circumstances.number.value_or(kUsualParts);
                const std::string count = std::to_string(parts);
                Recipe recipe{.micro_batches = parts,
                              .micro_batch = micro_batch_of(circumstances, parts),
                              .has_set_to_none = torch_is_at_least(circumstances, 1, 7)};
                if (circumstances.framework == "transformers") {
                  recipe.arguments = {"per_device_train_batch_size=" + recipe.micro_batch,
                                      "gradient_accumulation_steps=" + count};
                } else if (circumstances.framework == "lightning") {
                  recipe.lines = {"loader = DataLoader(dataset, batch_size=" + recipe.micro_batch + ")"};
                  recipe.arguments = {"accumulate_grad_batches=" + count};
                } else if (circumstances.framework == "accelerate") {
                  recipe.arguments = {"gradient_accumulation_steps=" + count};
                } else if (circumstances.framework == "deepspeed") {
                  // A config holds numbers alone; without train_batch_size it follows from these two.
                  recipe.config =
                      "{\"gradient_accumulation_steps\": " + count +
                      (circumstances.batch_size ? ", \"train_micro_batch_size_per_gpu\": " + recipe.micro_batch + "}"
                                                : "}");
                }
                return recipe;
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.activations ? std::optional<int64_t>(*figures.activations / 4 * 3) : std::nullopt;
              }};
}

}  // namespace oomscope
