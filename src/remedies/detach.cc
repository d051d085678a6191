// What outlives a step keeps its graph, unless it is detached.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy detach() {
  return {.id = "detach",
          .page = "graph-kept",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(history.append(output.detach().cpu())
hidden = hidden.detach()  # between the chunks of a recurrent net)");
          }};
}

}  // namespace oomscope
