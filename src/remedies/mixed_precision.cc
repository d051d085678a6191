// 16-bit compute. Which type depends on the card: no fast fp16 before sm_70, no bf16 before sm_80.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

bool can_compute_in_16_bits(const Circumstances& circumstances) {
  return is_gpu_case(circumstances) && circumstances.compute_capability.value_or(80) >= 70;
}

// torch.autocast takes the device since 1.10; before, only CUDA had one.
std::string bf16_lines(const Circumstances& circumstances) {
  const char* scope = torch_is_at_least(circumstances, 1, 10) ? "with torch.autocast(\"cuda\", dtype=torch.bfloat16):"
                                                              : "with torch.cuda.amp.autocast():";
  return std::string(scope) + "\n    loss = loss_of(model, batch)\nloss.backward()";
}

// torch.cuda.amp.GradScaler is a deprecated name since 2.3.
std::string fp16_lines(const Circumstances& circumstances) {
  const char* scaler = torch_is_at_least(circumstances, 2, 3) ? "scaler = torch.amp.GradScaler(\"cuda\")"
                                                              : "scaler = torch.cuda.amp.GradScaler()";
  const char* scope = torch_is_at_least(circumstances, 1, 10) ? "with torch.autocast(\"cuda\", dtype=torch.float16):"
                                                              : "with torch.cuda.amp.autocast():";
  return std::string(scaler) + "\n" + scope +
         "\n    loss = loss_of(model, batch)\nscaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()";
}

}  // namespace

Remedy mixed_precision() {
  return {.id = "mixed-precision",
          .page = "capacity",
          .effect = Effect::transform,
          .applies = can_compute_in_16_bits,
          .snippets = [](const Circumstances& circumstances) {
            const bool has_bf16 = circumstances.compute_capability.value_or(80) >= 80;
            if (circumstances.framework == "transformers") {
              return python(has_bf16 ? "args = TrainingArguments(\"out\", bf16=True)"
                                     : "args = TrainingArguments(\"out\", fp16=True)");
            }
            if (circumstances.framework == "lightning") {
              return python(has_bf16 ? "trainer = Trainer(precision=\"bf16-mixed\")"
                                     : "trainer = Trainer(precision=\"16-mixed\")");
            }
            return python(has_bf16 ? bf16_lines(circumstances) : fp16_lines(circumstances));
          }};
}

}  // namespace oomscope
