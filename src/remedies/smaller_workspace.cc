// Libraries take scratch memory a stream and a handle.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy smaller_workspace() {
  return {.id = "smaller-workspace",
          .page = "library-workspace",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return environment("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8") +
                   python(R"(torch.backends.cudnn.benchmark = False)");
          }};
}

}  // namespace oomscope
