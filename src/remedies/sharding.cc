// Each card keeps its share of the states alone.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy sharding() {
  return {.id = "sharding",
          .page = "capacity",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_training_case(circumstances) && may_have_several_cards(circumstances);
              },
          .snippets =
              [](const Circumstances& circumstances) {
                if (circumstances.framework == "transformers")
                  return python(R"(args = TrainingArguments("out", fsdp="full_shard auto_wrap"))");
                if (circumstances.framework == "lightning")
                  return python(R"(trainer = Trainer(strategy="fsdp", devices=8))");
                if (circumstances.framework == "deepspeed")
                  return python(R"(config = {"zero_optimization": {"stage": 3}})");
                return torch_is_at_least(circumstances, 2, 6)
                           ? python(
                                 "from torch.distributed.fsdp import fully_shard\nfor block in model.blocks:\n    "
                                 "fully_shard(block)\nfully_shard(model)")
                           : python(
                                 "from torch.distributed.fsdp import FullyShardedDataParallel\nmodel = "
                                 "FullyShardedDataParallel(model)");
              }};
}

}  // namespace oomscope
