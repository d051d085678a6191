// Kernels loaded when they are first used.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy lazy_modules() {
  return {.id = "lazy-modules",
          .page = "card-full-before-start",
          .effect = Effect::figures,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) { return environment("CUDA_MODULE_LOADING", "LAZY"); }};
}

}  // namespace oomscope
