// Micro-batches: the same mathematics a step, fewer samples at once.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy gradient_accumulation() {
  return {
      .id = "gradient-accumulation",
      .page = "larger-batch",
      .effect = Effect::transform,
      .applies = is_training_case,
      .snippets =
          [](const Circumstances& circumstances) {
            if (circumstances.framework == "transformers")
              return python(
                  R"(args = TrainingArguments("out", per_device_train_batch_size=2, gradient_accumulation_steps=4))");
            if (circumstances.framework == "lightning")
              return python(R"(trainer = Trainer(accumulate_grad_batches=4))");
            if (circumstances.framework == "accelerate")
              return python(R"(accelerator = Accelerator(gradient_accumulation_steps=4))");
            return python(R"(for i, batch in enumerate(loader):
    loss = loss_of(model, batch) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True))");
          },
      .saved_bytes =
          [](const Figures& figures) {
            return figures.activations ? std::optional<int64_t>(*figures.activations / 4 * 3) : std::nullopt;
          }};
}

}  // namespace oomscope
