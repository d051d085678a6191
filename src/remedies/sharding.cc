// Each card keeps its share of the states alone.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

constexpr int64_t kUsualRanks = 8;

int stage_of(const Circumstances& circumstances) {
  if (circumstances.variant == "zero-1") return 1;
  return circumstances.variant == "zero-2" ? 2 : 3;
}

Recipe in_torch(const Circumstances& circumstances, int stage) {
  Recipe recipe;
  if (stage == 1 || !torch_is_at_least(circumstances, 1, 12)) {  // FSDP came then
    recipe = {.imports = {"from torch.distributed.optim import ZeroRedundancyOptimizer",
                          "from torch.nn.parallel import DistributedDataParallel"},
              .lines = {"model = DistributedDataParallel(model, gradient_as_bucket_view=True)"},
              .optimizer = "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=" +
                           optimizer_class(circumstances, ", ") + ")"};
  } else if (torch_is_at_least(circumstances, 2, 6)) {
    const std::string options = stage == 2 ? ", reshard_after_forward=False" : "";
    recipe = {.imports = {"from torch.distributed.fsdp import fully_shard"},
              .lines = {"for block in model.blocks:\n    fully_shard(block" + options + ")",
                        "fully_shard(model" + options + ")"}};
  } else {
    recipe = {.imports = {"from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy"},
              .lines = {std::string("model = FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.") +
                        (stage == 2 ? "SHARD_GRAD_OP)" : "FULL_SHARD)")}};
  }
  return recipe;
}

std::string zero_config(int stage) { return "{\"zero_optimization\": {\"stage\": " + std::to_string(stage) + "}}"; }

Recipe recipe_of(const Circumstances& circumstances) {
  const int stage = stage_of(circumstances);
  const std::string ranks = std::to_string(circumstances.number.value_or(kUsualRanks));
  const std::string& framework = circumstances.framework;
  Recipe recipe = has_config(circumstances) ? Recipe{.config = zero_config(stage)} : in_torch(circumstances, stage);
  if (framework == "lightning") {
    recipe.arguments = {"devices=" + ranks};
    return recipe;
  }
  const bool has_torchrun = torch_is_at_least(circumstances, 1, 10);
  const std::string launcher = framework == "accelerate"  ? "accelerate launch --num_processes "
                               : framework == "deepspeed" ? "deepspeed --num_gpus "
                               : has_torchrun             ? "torchrun --nproc-per-node "
                                              : "python -m torch.distributed.launch --use_env --nproc_per_node ";
  recipe.imports.insert(recipe.imports.begin(), "# started with: " + launcher + ranks + " train.py");
  return recipe;
}

}  // namespace

Remedy sharding() {
  return {.id = "sharding",
          .page = "capacity",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                // torch itself shards since 1.8: the optimizer's state.
                return is_training_case(circumstances) && may_have_several_cards(circumstances) &&
                       (has_config(circumstances) || torch_is_at_least(circumstances, 1, 8));
              },
          .recipe = recipe_of};
}

}  // namespace oomscope
