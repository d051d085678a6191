// An exception keeps its frames, and these every local tensor.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy clear_traceback() {
  return {.id = "clear-traceback",
          .page = "exception-holds-tensors",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(failed = False
try:
    step(batch)
except torch.cuda.OutOfMemoryError:
    failed = True  # nothing else here: inside, the traceback lives
if failed:
    import gc, sys
    sys.last_traceback = sys.last_value = sys.last_exc = None
    gc.collect()
    torch.cuda.empty_cache())");
          }};
}

}  // namespace oomscope
