// Micro-batches: the same mathematics a step, fewer samples at once.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// "accumulate-8" says into how many parts; else 4.
std::string parts_of(const Circumstances& circumstances) {
  constexpr std::string_view kPrefix = "accumulate-";
  return circumstances.variant.starts_with(kPrefix) ? circumstances.variant.substr(kPrefix.size()) : "4";
}

}  // namespace

Remedy gradient_accumulation() {
  return {.id = "gradient-accumulation",
          .page = "larger-batch",
          .effect = Effect::transform,
          .applies = is_training_case,
          .snippets =
              [](const Circumstances& circumstances) {
                const std::string parts = parts_of(circumstances);
                if (circumstances.framework == "transformers")
                  return python(
                      "args = TrainingArguments(\"out\", per_device_train_batch_size=2, gradient_accumulation_steps=" +
                      parts + ")");
                if (circumstances.framework == "lightning")
                  return python("trainer = Trainer(accumulate_grad_batches=" + parts + ")");
                if (circumstances.framework == "accelerate")
                  return python("accelerator = Accelerator(gradient_accumulation_steps=" + parts + ")");
                return python("for i, batch in enumerate(loader):\n    loss = loss_of(model, batch) / " + parts +
                              "\n    loss.backward()\n    if (i + 1) % " + parts +
                              " == 0:\n        optimizer.step()\n        optimizer.zero_grad(set_to_none=True)");
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.activations ? std::optional<int64_t>(*figures.activations / 4 * 3) : std::nullopt;
              }};
}

}  // namespace oomscope
