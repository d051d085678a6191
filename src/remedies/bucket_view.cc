// Without it gradients exist twice: in .grad and in the buckets.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy bucket_view() {
  return {.id = "bucket-view",
          .page = "capacity",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_training_case(circumstances) && may_have_several_cards(circumstances);
              },
          .recipe =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "lightning") {
                  return Recipe{.imports = {"from lightning.pytorch.strategies import DDPStrategy"},
                                .arguments = {"strategy=DDPStrategy(gradient_as_bucket_view=True)"}};
                }
                if (circumstances.framework == "accelerate") {
                  return Recipe{
                      .imports = {"from accelerate import DistributedDataParallelKwargs"},
                      .arguments = {"kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True)]"}};
                }
                return Recipe{.lines = {"model = DistributedDataParallel(model, gradient_as_bucket_view=True)"}};
              },
          .saved_bytes = [](const Figures& figures) { return figures.gradients; }};
}

}  // namespace oomscope
