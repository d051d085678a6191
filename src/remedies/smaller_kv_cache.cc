// Keys and values of every token of every sequence.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy smaller_kv_cache() {
  return {
      .id = "smaller-kv-cache",
      .page = "input-size",
      .effect = Effect::figures,
      .applies =
          [](const Circumstances& circumstances) {
            return is_gpu_case(circumstances) && circumstances.phase != Phase::backward;
          },
      .snippets =
          [](const Circumstances& circumstances) {
            if (circumstances.framework == "vllm")
              return bash(R"(vllm serve NAME --gpu-memory-utilization 0.95 --max-model-len 8192 --max-num-seqs 16)");
            if (circumstances.framework == "llama.cpp")
              return bash("llama-server -m MODEL.gguf -c 4096 --cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on");
            return python(R"(model.generate(inputs, max_new_tokens=256, cache_implementation="static"))");
          },
      .text =
          [](const Circumstances& circumstances) {
            return Phrase{.key = circumstances.framework == "vllm"        ? "remedy.smaller-kv-cache.engine"
                                 : circumstances.framework == "llama.cpp" ? "remedy.smaller-kv-cache.llama"
                                                                          : "remedy.smaller-kv-cache.text"};
          }};
}

}  // namespace oomscope
