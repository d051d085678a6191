// A checkpoint loaded to the card is a second set of weights and states beside the first.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy load_on_cpu() {
  return {
      .id = "load-on-cpu",
      .page = "checkpoint-on-gpu",
      .effect = Effect::transform,
      .applies = is_any_case,
      .snippets =
          [](const Circumstances& circumstances) {
            if (torch_is_at_least(circumstances, 2, 1)) {
              return python(
                  "state = torch.load(path, map_location=\"cpu\", mmap=True, "
                  "weights_only=True)\nmodel.load_state_dict(state, assign=True)\ndel state");
            }
            return python("state = torch.load(path, map_location=\"cpu\")\nmodel.load_state_dict(state)\ndel state");
          },
      .saved_bytes = [](const Figures& figures) { return figures.parameters; }};
}

}  // namespace oomscope
