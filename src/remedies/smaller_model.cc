// Fewer parameters: weights, gradients and states shrink together.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy smaller_model() {
  return {.id = "smaller-model", .page = "capacity", .effect = Effect::figures, .applies = is_gpu_case};
}

}  // namespace oomscope
