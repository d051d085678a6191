// Pinned memory is rounded up, kept for ever and counted by the container.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy no_pinning() {
  return {.id = "no-pinning",
          .page = "pinned-memory",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_loader_case(circumstances) && circumstances.pin_memory.value_or(true);
              },
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "transformers")
                  return python(R"(args = TrainingArguments("out", dataloader_pin_memory=False))");
                return loader(circumstances, "num_workers=" + workers_of(circumstances) + ", pin_memory=False");
              }};
}

}  // namespace oomscope
