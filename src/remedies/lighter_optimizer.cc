// Adam keeps two numbers a parameter; others keep one, or bytes.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

Recipe sgd(const Circumstances& circumstances, bool has_momentum) {
  if (circumstances.framework == "deepspeed") {
    return {.config = has_momentum ? R"({"optimizer": {"type": "SGD", "params": {"lr": 1e-2, "momentum": 0.9}}})"
                                   : R"({"optimizer": {"type": "SGD", "params": {"lr": 1e-2}}})"};
  }
  if (has_momentum) return {.optimizer = "torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)"};
  if (circumstances.framework == "transformers") return {.arguments = {R"(optim="sgd")"}};
  return {.optimizer = "torch.optim.SGD(model.parameters(), lr=1e-2)"};
}

// torch has its own since 2.5.
Recipe adafactor(const Circumstances& circumstances) {
  if (circumstances.framework == "transformers") return {.arguments = {R"(optim="adafactor")"}};
  if (torch_is_at_least(circumstances, 2, 5)) return {.optimizer = "torch.optim.Adafactor(model.parameters())"};
  return {.imports = {"from transformers.optimization import Adafactor"},
          .optimizer = "Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)"};
}

Recipe eight_bit(const Circumstances& circumstances) {
  if (circumstances.framework == "transformers") return {.arguments = {R"(optim="adamw_bnb_8bit")"}};
  const char* made = circumstances.has_momentum_alone
                         ? "bitsandbytes.optim.SGD8bit(model.parameters(), lr=1e-2, momentum=0.9)"
                         : "bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-4)";
  return {.imports = {"import bitsandbytes"}, .optimizer = made};
}

}  // namespace

Remedy lighter_optimizer() {
  return {.id = "lighter-optimizer",
          .page = "optimizer-state",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                const bool has_less = !circumstances.has_momentum_alone || torch_is_at_least(circumstances, 1, 8);
                return is_training_case(circumstances) && (has_less || !circumstances.variant.empty());
              },
          .recipe =
              [](const Circumstances& circumstances) {
                if (circumstances.variant == "sgd") return sgd(circumstances, false);
                if (circumstances.variant == "sgd-momentum") return sgd(circumstances, true);
                // 8-bit states came years after 1.7.
                if (circumstances.variant.empty() && !torch_is_at_least(circumstances, 1, 8))
                  return sgd(circumstances, true);
                return circumstances.variant == "adafactor" ? adafactor(circumstances) : eight_bit(circumstances);
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.optimizer_state ? std::optional<int64_t>(*figures.optimizer_state / 4 * 3)
                                               : std::nullopt;
              }};
}

}  // namespace oomscope
