// A smaller share for this process, so that its neighbours fit.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy lower_limit() {
  return {.id = "lower-limit",
          .page = "other-memory-on-card",
          .effect = Effect::figures,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances& circumstances) {
            if (circumstances.framework == "vllm") return bash(R"(vllm serve NAME --gpu-memory-utilization 0.45)");
            return python(R"(torch.cuda.set_per_process_memory_fraction(0.45))");
          }};
}

}  // namespace oomscope
