// One long-lived small block keeps its whole 2 MiB segment.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy group_small_blocks() {
  return {.id = "group-small-blocks",
          .page = "small-blocks-pin-segments",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(flat = torch.empty(sum(sizes), device="cuda")
parts = flat.split(sizes))");
          }};
}

}  // namespace oomscope
