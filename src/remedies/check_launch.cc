// CUDA reports errors late; with blocking launches the traceback is right.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy check_launch() {
  return {.id = "check-launch",
          .page = "library-failure",
          .effect = Effect::unknown,
          .applies = is_any_case,
          .snippets = [](const Circumstances&) { return environment("CUDA_LAUNCH_BLOCKING", "1"); }};
}

}  // namespace oomscope
