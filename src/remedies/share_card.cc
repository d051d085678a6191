// Several ranks on one card, mostly by mistake: every process took device 0.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy share_card() {
  return {.id = "share-card",
          .page = "ranks-share-card",
          .effect = Effect::figures,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances& circumstances) {
            return python(R"(import os
torch.cuda.set_device(int(os.environ["LOCAL_RANK"])))") +
                   bash(torch_launcher(circumstances));
          }};
}

}  // namespace oomscope
