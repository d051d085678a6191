// Cached segments go back to the driver: for others on the card, not for this process.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy release_cache() {
  return {.id = "release-cache",
          .page = "other-memory-on-card",
          .effect = Effect::replay,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(import gc
gc.collect()
torch.cuda.empty_cache()  # once, after validation or before another process starts)");
          }};
}

}  // namespace oomscope
