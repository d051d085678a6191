// Activation checkpointing: keep the inputs of blocks alone and recompute the rest in backward.
#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

constexpr const char* kImport = "from torch.utils.checkpoint import checkpoint";

// Selective: results of these stay, all else is computed again (since torch 2.4).
const std::vector<std::string> kSelective = {
    "aten = torch.ops.aten",
    "kept = [aten.mm.default, aten.addmm.default, aten.bmm.default, aten.convolution.default,\n"
    "        aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default]",
    "context = functools.partial(create_selective_checkpoint_contexts, kept)"};

// In the model's forward.
Recipe in_forward(const Circumstances& circumstances, int64_t every, bool is_selective) {
  Recipe recipe{.imports = {kImport}};
  std::string options = torch_is_at_least(circumstances, 1, 11) ? ", use_reentrant=False" : "";
  if (is_selective) {
    recipe.imports = {"import functools",
                      "from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts"};
    recipe.lines = kSelective;
    options += ", context_fn=context";
  }
  const std::string again = "x = checkpoint(block, x" + options + ")";
  if (every > 1) {
    recipe.lines.push_back("for i, block in enumerate(blocks):  # in forward\n    " + again + " if i % " +
                           std::to_string(every) + " == 0 else block(x)");
  } else {
    recipe.lines.push_back("for block in blocks:  # in forward\n    " + again);
  }
  return recipe;
}

// Wrapped from outside, for models whose forward is somebody else's.
Recipe around_blocks(int64_t every, bool is_selective) {
  Recipe recipe{.imports = {"from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (\n"
                            "    apply_activation_checkpointing, checkpoint_wrapper)"}};
  std::string options;
  if (is_selective) {
    recipe.imports.insert(
        recipe.imports.begin(),
        {"import functools", "from torch.utils.checkpoint import create_selective_checkpoint_contexts"});
    recipe.lines = kSelective;
    options =
        ",\n                               checkpoint_wrapper_fn=functools.partial(checkpoint_wrapper, "
        "context_fn=context)";
  }
  recipe.lines.push_back("chosen = {id(block) for block in list(blocks)" +
                         (every > 1 ? "[::" + std::to_string(every) + "]" : "") + "}  # the model's repeated layers");
  recipe.lines.push_back("apply_activation_checkpointing(model, check_fn=lambda module: id(module) in chosen" +
                         options + ")");
  return recipe;
}

}  // namespace

Remedy checkpointing() {
  return {.id = "checkpointing",
          .page = "capacity",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_training_case(circumstances) &&
                       is_among(circumstances.phase, {Phase::forward, Phase::loss, Phase::backward});
              },
          .recipe =
              [](const Circumstances& circumstances) {
                const int64_t every = circumstances.number.value_or(1);
                const bool is_selective = circumstances.variant == "checkpointing-selective";
                const std::string& framework = circumstances.framework;
                if (framework == "transformers" && every == 1 && !is_selective) {
                  return Recipe{.lines = {"model.config.use_cache = False"},
                                .arguments = {"gradient_checkpointing=True",
                                              "gradient_checkpointing_kwargs={\"use_reentrant\": False}"}};
                }
                const bool owns_forward =
                    framework != "transformers" && framework != "accelerate" && framework != "deepspeed";
                return owns_forward ? in_forward(circumstances, every, is_selective)
                                    : around_blocks(every, is_selective);
              }};
}

}  // namespace oomscope
