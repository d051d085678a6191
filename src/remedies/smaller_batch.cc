// Fewer samples at once: activations and logits shrink in proportion.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy smaller_batch() {
  return {
      .id = "smaller-batch",
      .page = "larger-batch",
      .effect = Effect::transform,
      .applies = is_gpu_case,
      .snippets =
          [](const Circumstances& circumstances) {
            if (circumstances.framework == "transformers")
              return python(
                  R"(args = TrainingArguments("out", per_device_train_batch_size=4, per_device_eval_batch_size=4))");
            if (circumstances.framework == "lightning")
              return python(R"(trainer_tuner = lightning.pytorch.tuner.Tuner(trainer)
trainer_tuner.scale_batch_size(model, mode="binsearch"))");
            return python(R"(loader = DataLoader(dataset, batch_size=4))");
          },
      .saved_bytes =
          [](const Figures& figures) {
            return figures.activations ? std::optional<int64_t>(*figures.activations / 2) : std::nullopt;
          }};
}

}  // namespace oomscope
