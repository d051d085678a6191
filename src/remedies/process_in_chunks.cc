// One request larger than the card: no setting and no smaller batch of one helps.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy process_in_chunks() {
  return {.id = "process-in-chunks",
          .page = "input-size",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(parts = [operation(part) for part in x.split(1024)]
out = torch.cat(parts))");
          }};
}

}  // namespace oomscope
