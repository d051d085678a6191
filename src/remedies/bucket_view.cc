// Without it gradients exist twice: in .grad and in the buckets.
#include "remedies/catalogue.h"
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
          .snippets =
              [](const Circumstances&) {
                return python(R"(model = DistributedDataParallel(model, gradient_as_bucket_view=True))");
              },
          .saved_bytes = [](const Figures& figures) { return figures.gradients; }};
}

}  // namespace oomscope
