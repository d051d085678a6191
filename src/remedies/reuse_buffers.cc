// The largest size first, and then views of it.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy reuse_buffers() {
  return {.id = "reuse-buffers",
          .page = "growing-sizes",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(buffer = torch.empty(largest_shape, device="cuda")
view = buffer[:rows]
torch.matmul(a, b, out=view))");
          }};
}

}  // namespace oomscope
