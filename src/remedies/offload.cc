// Host memory in place of the card, for what is not needed at once.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy offload() {
  return {
      .id = "offload",
      .page = "capacity",
      .effect = Effect::transform,
      .applies = is_gpu_case,
      .snippets = [](const Circumstances& circumstances) {
        if (circumstances.framework == "transformers")
          return python(
              R"(model = AutoModelForCausalLM.from_pretrained(name, device_map="auto", offload_folder="offload"))");
        if (circumstances.framework == "deepspeed")
          return python(
              R"(config = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}})");
        return python(R"(with torch.autograd.graph.save_on_cpu(pin_memory=True):
    loss = loss_of(model, batch)
loss.backward())");
      }};
}

}  // namespace oomscope
