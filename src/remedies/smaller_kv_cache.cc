// Keys and values of every token of every sequence.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// Half the tokens and sequences that are in force, and no smaller a share of the card.
std::string engine_line(const LimitsInForce& limits) {
  const auto half = [](const std::optional<int64_t>& value, int64_t usual) {
    return value ? std::max<int64_t>(1, std::min(usual, *value / 2)) : usual;
  };
  return fmt::format("vllm serve NAME --gpu-memory-utilization {:.2g} \\\n    --max-model-len {} --max-num-seqs {}",
                     std::max(0.95, limits.engine_share.value_or(0)), half(limits.engine_tokens, 8192),
                     half(limits.engine_sequences, 16));
}

}  // namespace

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
            if (circumstances.framework == "vllm") return bash(engine_line(circumstances.limits));
            if (circumstances.framework == "llama.cpp")
              return bash(
                  "llama-server -m MODEL.gguf -c 4096 --flash-attn on \\\n    --cache-type-k q8_0 --cache-type-v q8_0");
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
