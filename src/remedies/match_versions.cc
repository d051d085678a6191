// Driver, CUDA, cuDNN and torch that do not fit fail in the names of memory.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy match_versions() {
  return {.id = "match-versions",
          .page = "library-failure",
          .effect = Effect::unknown,
          .applies = is_any_case,
          .snippets = [](const Circumstances&) {
            return bash(R"(python -m torch.utils.collect_env
nvidia-smi
echo "$LD_LIBRARY_PATH")");
          }};
}

}  // namespace oomscope
