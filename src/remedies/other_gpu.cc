// Another card has room.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy other_gpu() {
  return {.id = "other-gpu",
          .page = "other-memory-on-card",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && may_have_several_cards(circumstances);
              },
          .snippets = [](const Circumstances&) { return environment("CUDA_VISIBLE_DEVICES", "1"); }};
}

}  // namespace oomscope
