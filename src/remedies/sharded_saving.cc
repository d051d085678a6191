// A full state gathered on one card is one more copy of everything.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy sharded_saving() {
  return {
      .id = "sharded-saving",
      .page = "copy-of-weights",
      .effect = Effect::transform,
      .applies =
          [](const Circumstances& circumstances) {
            const bool gathers_on_host = is_host_case(circumstances) && circumstances.phase == Phase::saving;
            return gathers_on_host ||
                   (is_gpu_case(circumstances) && is_among(circumstances.phase, {Phase::saving, Phase::between_steps}));
          },
      .snippets =
          [](const Circumstances& circumstances) {
            if (torch_is_at_least(circumstances, 2, 2)) {
              return python(
                  "import torch.distributed.checkpoint as dcp\ndcp.save({\"model\": model.state_dict()}, "
                  "checkpoint_id=\"checkpoint\")");
            }
            return python(
                "state = {name: tensor.cpu() for name, tensor in model.state_dict().items()}\ntorch.save(state, path)");
          }};
}

}  // namespace oomscope
