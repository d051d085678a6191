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
                const bool is_transformers = circumstances.framework == "transformers";
                if (circumstances.variant == "sgd" || circumstances.variant == "sgd-momentum") {
                  const bool has_momentum = circumstances.variant == "sgd-momentum";
                  if (is_transformers) return python(R"(args = TrainingArguments("out", optim="sgd"))");
                  return python(has_momentum ? "optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)"
                                             : "optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)");
                }
                if (circumstances.variant == "adafactor") {
                  return python(is_transformers ? R"(args = TrainingArguments("out", optim="adafactor"))"
                                                : "optimizer = torch.optim.Adafactor(model.parameters())");
                }
                if (is_transformers) return python(R"(args = TrainingArguments("out", optim="adamw_bnb_8bit"))");
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
