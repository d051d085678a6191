// record_stream holds a block back until the other stream has passed; waiting gives it back at once.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy wait_for_stream() {
  return {.id = "wait-for-stream",
          .page = "pending-frees",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(with torch.cuda.stream(side):
    copy = tensor.to("cpu", non_blocking=True)
torch.cuda.current_stream().wait_stream(side)
del tensor  # safe now, and no record_stream is needed)");
          }};
}

}  // namespace oomscope
