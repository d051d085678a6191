// Adam keeps two numbers a parameter; others keep one, or bytes.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy lighter_optimizer() {
  return {.id = "lighter-optimizer",
          .page = "optimizer-state",
          .effect = Effect::figures,
          .applies = is_training_case,
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "transformers")
                  return python(R"(args = TrainingArguments("out", optim="adamw_bnb_8bit"))");
                return python(R"(import bitsandbytes
optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-4))");
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.optimizer_state ? std::optional<int64_t>(*figures.optimizer_state / 4 * 3)
                                               : std::nullopt;
              }};
}

}  // namespace oomscope
