// Memory is free when the last reference is gone.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

constexpr const char* kLines = "import gc\ndel model, optimizer, outputs\ngc.collect()\ntorch.cuda.empty_cache()";

}  // namespace

Remedy delete_references() {
  return {.id = "delete-references",
          .page = "second-model",
          .effect = Effect::transform,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances&) {
            return std::vector<Snippet>{{Place::python, kLines},
                                        {Place::notebook, std::string(kLines) + "\n%reset -f out"}};
          }};
}

}  // namespace oomscope
