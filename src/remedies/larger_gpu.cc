// The job needs what it needs.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy larger_gpu() {
  return {.id = "larger-gpu", .page = "capacity", .effect = Effect::replay, .applies = is_gpu_case};
}

}  // namespace oomscope
