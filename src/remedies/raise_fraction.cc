// A limit that somebody set is what was hit, not the card.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy raise_fraction() {
  return {.id = "raise-fraction",
          .page = "capacity-limit",
          .effect = Effect::figures,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances& circumstances) {
            if (circumstances.framework == "vllm") return bash(R"(vllm serve NAME --gpu-memory-utilization 0.95)");
            return python(R"(torch.cuda.set_per_process_memory_fraction(1.0))");
          }};
}

}  // namespace oomscope
