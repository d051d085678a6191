// 16-bit compute, since torch 1.6. Which type depends on the card: no fast fp16 before sm_70, no bf16 before sm_80.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

bool can_compute_in_16_bits(const Circumstances& circumstances) {
  return is_gpu_case(circumstances) && circumstances.compute_capability.value_or(80) >= 70 &&
         !circumstances.is_16_bit && torch_is_at_least(circumstances, 1, 6);
}

// torch.autocast takes the device since 1.10; before, only CUDA had one.
std::string scope_of(const Circumstances& circumstances, std::string_view type) {
  if (!torch_is_at_least(circumstances, 1, 10)) return "with torch.cuda.amp.autocast():";
  return "with torch.autocast(\"cuda\", dtype=torch." + std::string(type) + "):";
}

// torch.cuda.amp.GradScaler is a deprecated name since 2.3.
std::string scaler_of(const Circumstances& circumstances) {
  return torch_is_at_least(circumstances, 2, 3) ? "torch.amp.GradScaler(\"cuda\")" : "torch.cuda.amp.GradScaler()";
}

// Weights, gradients and states in 16 bits, too.
Recipe pure(const Circumstances& circumstances, const std::string& type) {
  if (circumstances.framework == "transformers") {
    return {.lines = {"model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch." + type + ")"}};
  }
  if (circumstances.framework == "lightning") {
    return {.arguments = {type == "bfloat16" ? R"(precision="bf16-true")" : R"(precision="16-true")"}};
  }
  if (circumstances.framework == "deepspeed" && type == "bfloat16") {
    return {.config = R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,)"
                      R"( "bf16_optimizer_states": true}, "zero_optimization": {"stage": 1}})"};
  }
  return {.lines = {"model = model.to(torch." + type + ")  # inputs that are no indices, too"}};
}

Recipe autocast(const Circumstances& circumstances, bool has_bf16) {
  const std::string short_name = has_bf16 ? "bf16" : "fp16";
  const std::string type = has_bf16 ? "bfloat16" : "float16";
  if (circumstances.framework == "transformers") return {.arguments = {short_name + "=True"}};
  if (circumstances.framework == "lightning") {
    return {.arguments = {has_bf16 ? R"(precision="bf16-mixed")" : R"(precision="16-mixed")"}};
  }
  if (circumstances.framework == "accelerate") return {.arguments = {"mixed_precision=\"" + short_name + "\""}};
  if (circumstances.framework == "deepspeed") {
    return {.config = R"({"torch_autocast": {"enabled": true, "dtype": ")" + type + "\"}}"};
  }
  return {.scope = scope_of(circumstances, type), .scaler = has_bf16 ? "" : scaler_of(circumstances)};
}

}  // namespace

Remedy mixed_precision() {
  return {.id = "mixed-precision",
          .page = "capacity",
          .effect = Effect::transform,
          .applies = can_compute_in_16_bits,
          .recipe = [](const Circumstances& circumstances) {
            const bool has_bf16 = circumstances.compute_capability.value_or(80) >= 80;
            return circumstances.variant == "pure-bf16" ? pure(circumstances, has_bf16 ? "bfloat16" : "float16")
                                                        : autocast(circumstances, has_bf16);
          }};
}

}  // namespace oomscope
