// Memory of graphs and MemPools is closed to all others.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy pool_limit() {
  return {.id = "pool-limit",
          .page = "private-pool",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return python(R"(pool = torch.cuda.graph_pool_handle()
with torch.cuda.graph(first_graph, pool=pool):
    run_first()
with torch.cuda.graph(second_graph, pool=pool):
    run_second())");
          }};
}

}  // namespace oomscope
