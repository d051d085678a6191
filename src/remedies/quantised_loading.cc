// Weights in 8 or 4 bits: an eighth to a quarter of fp32.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy quantised_loading() {
  return {.id = "quantised-loading",
          .page = "capacity",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                const bool is_trained =  // such weights take no gradients
                    circumstances.phase == Phase::backward || circumstances.phase == Phase::optimizer_step;
                return is_gpu_case(circumstances) && !is_trained;
              },
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "vllm") return bash(R"(vllm serve NAME-AWQ --quantization awq)");
                if (circumstances.framework == "llama.cpp")
                  return bash("llama-quantize MODEL.gguf MODEL-Q4_K_M.gguf Q4_K_M");
                return python(R"(bits = BitsAndBytesConfig(load_in_4bit=True,
                          bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained(name, quantization_config=bits))");
              },
          .saved_bytes =
              [](const Figures& figures) {
                return figures.parameters ? std::optional<int64_t>(*figures.parameters / 2) : std::nullopt;
              }};
}

}  // namespace oomscope
