// Host memory in place of the card, for what is not needed at once: activations, optimizer states, or parameters with
// all that belongs to them.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

constexpr const char* kStatesConfig =
    R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true}}})";
constexpr const char* kAllConfig =
    R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},)"
    R"( "offload_param": {"device": "cpu", "pin_memory": true}}})";

Recipe states(const Circumstances& circumstances) {
  if (has_config(circumstances)) return {.config = kStatesConfig};
  return {
      .imports = {"from torchao.optim import CPUOffloadOptimizer"},
      .optimizer = "CPUOffloadOptimizer(model.parameters(), " + optimizer_class(circumstances, ", ") + ", fused=True)"};
}

Recipe parameters(const Circumstances& circumstances) {
  if (has_config(circumstances)) return {.config = kAllConfig};
  if (torch_is_at_least(circumstances, 2, 6)) {
    return {.imports = {"from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard"},
            .lines = {"for block in model.blocks:\n    fully_shard(block, offload_policy=CPUOffloadPolicy())",
                      "fully_shard(model, offload_policy=CPUOffloadPolicy())"}};
  }
  return {.imports = {"from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel"},
          .lines = {"model = FullyShardedDataParallel(model, cpu_offload=CPUOffload(offload_params=True))"}};
}

bool moves_states(const Circumstances& circumstances) {
  const bool is_step = circumstances.phase == Phase::optimizer_step || circumstances.phase == Phase::second_step;
  return circumstances.variant == "offload-optimizer" || (circumstances.variant.empty() && is_step);
}

// Is there what the recipe names? torchao asks for 2.4, FSDP came with 1.12, save_on_cpu with 1.10.
bool has_release(const Circumstances& circumstances) {
  if (has_config(circumstances)) return true;
  if (moves_states(circumstances)) return torch_is_at_least(circumstances, 2, 4);
  return torch_is_at_least(circumstances, 1, circumstances.variant == "offload-parameters" ? 12 : 10);
}

bool is_llama(const Circumstances& circumstances) { return circumstances.framework == "llama.cpp"; }

// What forward keeps. A framework that runs the loop calls forward somewhere in it.
Recipe activations(const Circumstances& circumstances) {
  const std::string scope = "with torch.autograd.graph.save_on_cpu(pin_memory=True):";
  if (has_config(circumstances)) return {.lines = {scope + "\n    loss = loss_of(model, batch)"}};
  return {.scope = scope};
}

}  // namespace

Remedy offload() {
  return {.id = "offload",
          .page = "capacity",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && (is_llama(circumstances) || has_release(circumstances));
              },
          .snippets =
              [](const Circumstances& circumstances) {
                return is_llama(circumstances) ? bash("llama-server -m MODEL.gguf -ngl 20  # layers on the card")
                                               : std::vector<Snippet>{};
              },
          .recipe =
              [](const Circumstances& circumstances) {
                if (moves_states(circumstances) && !is_llama(circumstances)) return states(circumstances);
                if (circumstances.variant == "offload-parameters") return parameters(circumstances);
                if (circumstances.framework == "transformers") {
                  return Recipe{.lines = {"model = AutoModelForCausalLM.from_pretrained(name, device_map=\"auto\", "
                                          "offload_folder=\"offload\")"}};
                }
                if (circumstances.framework == "deepspeed") return Recipe{.config = kStatesConfig};
                return activations(circumstances);
              },
          .text =
              [](const Circumstances& circumstances) {
                return Phrase{.key = is_llama(circumstances) ? "remedy.offload.llama" : "remedy.offload.text"};
              }};
}

}  // namespace oomscope
