// prefetch_factor batches wait for each worker.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy less_prefetch() {
  return {.id = "less-prefetch",
          .page = "loader-worker",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets = [](const Circumstances& circumstances) {
            if (circumstances.framework == "transformers")
              return python(R"(args = TrainingArguments("out", dataloader_prefetch_factor=1))");
            return loader(circumstances, "num_workers=" + workers_of(circumstances) + ", prefetch_factor=1");
          }};
}

}  // namespace oomscope
