// Layers on several cards.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy model_parallel() {
  return {.id = "model-parallel",
          .page = "capacity",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && may_have_several_cards(circumstances);
              },
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "vllm") return bash("vllm serve NAME --tensor-parallel-size 2");
                if (circumstances.framework == "transformers")
                  return python(R"(model = AutoModelForCausalLM.from_pretrained(name, device_map="auto"))");
                return python(R"(first = first.to("cuda:0")
second = second.to("cuda:1")
x = second(first(x).to("cuda:1")))");
              }};
}

}  // namespace oomscope
