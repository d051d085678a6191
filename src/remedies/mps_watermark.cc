// The MPS backend stops at a share of the machine's memory.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy mps_watermark() {
  return {.id = "mps-watermark",
          .page = "other-backend",
          .effect = Effect::unknown,
          .applies = [](const Circumstances& circumstances) { return circumstances.kind == Kind::other_backend_oom; },
          .snippets = [](const Circumstances&) { return environment("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.0"); }};
}

}  // namespace oomscope
