// Fewer samples at once: activations and logits shrink in proportion.
#include <algorithm>
#include <string>

#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy smaller_batch() {
  return {
      .id = "smaller-batch",
      .page = "larger-batch",
      .effect = Effect::transform,
      .applies =
          [](const Circumstances& circumstances) { return is_gpu_case(circumstances) || is_host_case(circumstances); },
      .snippets =
          [](const Circumstances& circumstances) {
            // Half of it to begin with.
            const std::string half = circumstances.batch_size
                                         ? std::to_string(std::max(*circumstances.batch_size / 2, 1))
                                         : "batch_size // 2";
            if (circumstances.framework == "transformers")
              return python("args = TrainingArguments(\n    \"out\", per_device_train_batch_size=" + half +
                            ",\n    per_device_eval_batch_size=" + half + ")");
            if (circumstances.framework == "lightning")
              return python(R"(trainer_tuner = lightning.pytorch.tuner.Tuner(trainer)
trainer_tuner.scale_batch_size(model, mode="binsearch"))");
            return python("loader = DataLoader(dataset, batch_size=" + half + ")");
          },
      .saved_bytes =
          [](const Figures& figures) {
            return figures.activations ? std::optional<int64_t>(*figures.activations / 2) : std::nullopt;
          }};
}

}  // namespace oomscope
