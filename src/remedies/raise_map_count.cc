// A process may have 65,530 mappings unless the kernel is told otherwise.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy raise_map_count() {
  return {.id = "raise-map-count",
          .page = "shared-memory",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets = [](const Circumstances& circumstances) {
            return bash("sudo sysctl -w vm.max_map_count=" + raised_count(circumstances.limits.mappings, 1048576));
          }};
}

}  // namespace oomscope
