#include "evidence/text/measures.h"

#include <re2/set.h>

#include <array>
#include <vector>

#include "evidence/text/patterns.h"

namespace oomscope {
namespace {

struct Measure {
  std::string_view remedy;
  std::string_view pattern;
};

#define OOMSCOPE_IS R"((?:["']?\s*[:=]|[ \t]*\.{2,})\s*["']?)"               // "=", "': '", " ....... "
#define OOMSCOPE_IS_ON OOMSCOPE_IS R"((?:[Tt]rue|yes|on|1)\b)"               // "=True", "': true"
#define OOMSCOPE_IS_FLAG R"((?:\s+(?:[Tt]rue\b|yes\b|on\b|1\b|-)|[ \t]*$))"  // alone, or followed by another option

constexpr auto kMeasures = std::to_array<Measure>({
    {"mixed-precision",
     R"((?i:\b(?:bf16|fp16|(?:bfloat16|fp16)_enabled|use_amp|amp|use_fp16|use_bf16|use_half))" OOMSCOPE_IS_ON ")"},
    {"mixed-precision", R"((?:^|\s)--(?:bf16|fp16|amp|half|use[_-]?(?:amp|fp16|bf16)))" OOMSCOPE_IS_FLAG},
    {"mixed-precision", R"((?i:mixed[_-]precision["']?\s*[:= ]\s*["']?(?:bf16|fp16)))"},
    {"mixed-precision", R"((?i:\bprecision["']?\s*[:= ]\s*["']?(?:bf16|16)\b))"},
    {"mixed-precision", R"(dtype["']?\s*[:= ]\s*["']?(?:torch\.)?(?:bfloat16|float16|half)\b)"},
    {"mixed-precision", R"((?i:using (?:auto half precision|16bit|bfloat16|native 16bit|half precision)))"},
    {"mixed-precision", R"(torch/amp/autocast_mode\.py|\bautocast\((?:enabled=True|["']|dtype|device_type|\)))"},
    {"mixed-precision", R"((?:model|net)\.(?:half|bfloat16)\(\)|\.to\((?:torch\.)?(?:bfloat16|float16|half)\))"},
    {"mixed-precision", R"(["'](?:bf16|fp16|amp|torch_autocast)["']\s*:\s*\{[^}]{0,80}["']enabled["']\s*:\s*[Tt]rue)"},
    {"gradient-accumulation",
     R"((?i:gradient_accumulation_steps|accumulate_grad_batches|accum(?:ulation)?_steps|grad_accum\w{0,8})["']?\s*[:= ]\s*["']?(?:[2-9]|[1-9]\d))"},
    {"checkpointing",
     R"((?i:(?:gradient|activation|grad)[_-]checkpoint(?:ing|s)?|use[_-]checkpoint(?:ing)?|recompute))" OOMSCOPE_IS_ON},
    {"checkpointing",
     R"((?:^|\s)--(?:gradient[_-]checkpointing|grad[_-]checkpoint(?:ing)?|use[_-]checkpoint|recompute-activations|)"
     R"(activation-checkpointing))" OOMSCOPE_IS_FLAG},
    {"checkpointing", R"(--recompute-granularity|gradient_checkpointing_enable\(|torch/utils/checkpoint\.py)"},
    {"checkpointing", R"((?i:incompatible with gradient checkpointing|gradient checkpointing (?:is )?enabled))"},
    {"checkpointing", R"(\brecompute_granularity)" OOMSCOPE_IS R"((?:full|selective)\b)"},
    {"sharding", R"((?i:zero(?:_optimization)?[_ -]?stage))" OOMSCOPE_IS R"([23]\b)"},
    {"quantised-loading", R"(load_in_(?:4|8)bit)" OOMSCOPE_IS_ON},
    {"quantised-loading", R"((?:^|\s)--(?:load[_-]in[_-])?[48][_-]?bit\b|--quantization\s+\w|\bQ[2-8]_[0-9K])"},
    {"fused-attention",
     R"(attn_implementation["']?\s*[:= ]\s*["']?(?:flash_attention|sdpa)|--(?:use[_-])?flash[_-]attn|)"
     R"(flash_attn_interface\.py|memory_efficient_attention\(|use_flash_attention(?:_2)?=True|)"
     R"((?i:using (?:flash ?attention|xformers)))"},
    {"fused-optimizer", R"(\bfused=True\b|adamw_torch_fused|apex/optimizers|fused_adam)"},
    {"lighter-optimizer",
     R"((?i:adam\w*8bit|adamw_(?:bnb_)?8bit|\badafactor\b|optim(?:izer)?["']?\s*[:=]\s*["']?sgd\b))"},
    {"offload", R"((?i:cpu[_-]offload))" OOMSCOPE_IS_ON},
    {"offload",
     R"(["']?offload_(?:optimizer|param)["']?\s*[:=]\s*\{[^}]{0,60}["']?cpu|CPUOffload\(offload_params=True)"},
    {"sharding", R"(_?fully_sharded_data_parallel\.py|distributed/_?fsdp/|runtime/zero/stage|FULL_SHARD|)"
                 R"((?i:zero[_ -]?stage["']?\s*[:= ]\s*[23]\b|\bzero[-_]?[23]\b)|["']stage["']?:\s*[23]\b)"},
    {"set-to-none", R"(zero_grad\(set_to_none=True\))"},
    {"need-weights-false", R"(need_weights=False)"},
    {"bucket-view", R"(gradient_as_bucket_view=True)"},
    {"sharing-strategy", R"((?:^|[^`'"\w.])(?:\w+\.)*set_sharing_strategy\(["']file_system["']\))"},
    {"no-pinning", R"((?i:\bpin[_-]memory["']?\s*[:= ]\s*false\b))"},
    {"less-prefetch", R"(\bprefetch[_-]factor["']?\s*[:= ]\s*1\b)"},
});
#undef OOMSCOPE_IS
#undef OOMSCOPE_IS_ON
#undef OOMSCOPE_IS_FLAG

// All of them in one pass.
const re2::RE2::Set& patterns() {
  static const re2::RE2::Set set = [] {
    re2::RE2::Options options = bytes_options();
    options.set_posix_syntax(false);
    re2::RE2::Set all(options, re2::RE2::UNANCHORED);
    for (const Measure& measure : kMeasures) all.Add(std::string("(?m)") + std::string(measure.pattern), nullptr);
    all.Compile();
    return all;
  }();
  return set;
}

}  // namespace

void find_measures(std::string_view raw, std::set<std::string, std::less<>>& in_force) {
  std::vector<int> found;
  if (!patterns().Match({raw.data(), raw.size()}, &found)) return;
  for (int index : found) in_force.emplace(kMeasures[static_cast<size_t>(index)].remedy);
}

}  // namespace oomscope
