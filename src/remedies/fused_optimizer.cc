// The foreach step makes temporaries of the size of all parameters; the fused one none.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy fused_optimizer() {
  return {.id = "fused-optimizer",
          .page = "optimizer-state",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_training_case(circumstances) && is_among(circumstances.phase, {Phase::optimizer_step});
              },
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.variant == "foreach-off" && circumstances.framework.empty())
                  return python("optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)");
                if (circumstances.framework == "transformers")
                  return python(R"(args = TrainingArguments("out", optim="adamw_torch_fused"))");
                return python(torch_is_at_least(circumstances, 2, 0)
                                  ? "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)"
                                  : "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)");
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.step_temporaries ? figures.step_temporaries : figures.parameters;
              }};
}

}  // namespace oomscope
