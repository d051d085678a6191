// Predictions that are gathered on the card grow with the data set.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy results_to_cpu() {
  return {.id = "results-to-cpu",
          .page = "tensors-kept",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances& circumstances) {
            if (circumstances.framework == "transformers")
              return python(R"(args = TrainingArguments("out", eval_accumulation_steps=8))");
            return python(R"(predictions.append(output.argmax(-1).cpu()))");
          }};
}

}  // namespace oomscope
