#include "remedies/recipe.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

// As Python writes it.
std::string python_text(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? "True" : "False";
  if (!json.is_object()) return json.dump();
  std::string text;
  for (const auto& [key, value] : json.items()) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", key, python_text(value));
  }
  return "{" + text + "}";
}

// All recipes as one. Of what can be there once alone, the last word counts.
class Whole {
 public:
  explicit Whole(const std::vector<Recipe>& recipes) {
    for (const Recipe& recipe : recipes) add(recipe);
  }

  [[nodiscard]] std::string text(std::string_view framework) {
    std::vector<std::string> out = all_.imports;
    out.insert(out.end(), all_.lines.begin(), all_.lines.end());
    if (!all_.optimizer.empty()) out.push_back("optimizer = " + all_.optimizer);
    if (framework == "transformers") {
      transformers(out);
    } else if (framework == "lightning") {
      hand_on_config(out, "from lightning.pytorch.strategies import DeepSpeedStrategy",
                     "strategy=DeepSpeedStrategy(config=", ")");
      if (!all_.arguments.empty()) out.push_back(call("trainer = Trainer"));
    } else if (framework == "accelerate") {
      accelerate(out);
    } else if (framework == "deepspeed") {
      deepspeed(out);
    } else {
      loop(out);
    }
    return fmt::format("{}", fmt::join(out, "\n"));
  }

 private:
  void add(const Recipe& recipe) {
    for (const std::string& line : recipe.imports) {
      if (std::find(all_.imports.begin(), all_.imports.end(), line) == all_.imports.end()) all_.imports.push_back(line);
    }
    all_.lines.insert(all_.lines.end(), recipe.lines.begin(), recipe.lines.end());
    all_.arguments.insert(all_.arguments.end(), recipe.arguments.begin(), recipe.arguments.end());
    if (!recipe.config.empty()) add_config(Json::parse(recipe.config));
    if (!recipe.optimizer.empty()) all_.optimizer = recipe.optimizer;
    if (!recipe.scope.empty()) all_.scope = recipe.scope;
    if (!recipe.scaler.empty()) all_.scaler = recipe.scaler;
    if (recipe.micro_batches > 1) {
      all_.micro_batches = recipe.micro_batches;
      all_.micro_batch = recipe.micro_batch;
    }
    all_.clears_gradients = all_.clears_gradients || recipe.clears_gradients;
    all_.has_set_to_none = all_.has_set_to_none && recipe.has_set_to_none;
  }

  // Of two stages of ZeRO the higher one does what both want.
  void add_config(const Json& part) {
    const Json::json_pointer stage("/zero_optimization/stage");
    const int before = config_.value(stage, 0);
    config_.merge_patch(part);
    if (config_.value(stage, 0) < before) config_[stage] = before;
  }

  // DeepSpeed refuses a config without a batch. Transformers and Accelerate fill in what says "auto"; Lightning adds
  // the batch by itself.
  void leave_batch_to_framework() {
    if (config_.empty()) return;
    config_["train_micro_batch_size_per_gpu"] = "auto";
    config_["gradient_accumulation_steps"] = "auto";
  }

  // A config that the framework hands on to DeepSpeed, as one of its arguments.
  void hand_on_config(std::vector<std::string>& out, std::string_view import, std::string_view start,
                      std::string_view end) {
    if (config_.empty()) return;
    if (!import.empty()) out.emplace_back(import);
    all_.arguments.push_back(fmt::format("{}{}{}", start, python_text(config_), end));
  }

  [[nodiscard]] std::string call(std::string_view start) const {
    return fmt::format("{}({})", start, fmt::join(all_.arguments, ", "));
  }

  void transformers(std::vector<std::string>& out) {
    leave_batch_to_framework();
    hand_on_config(out, "", "deepspeed=", "");
    all_.arguments.insert(all_.arguments.begin(), "\"out\"");
    const bool has_arguments = all_.arguments.size() > 1;
    if (has_arguments) out.push_back(call("args = TrainingArguments"));
    if (!all_.optimizer.empty()) {
      out.push_back(fmt::format("trainer = Trainer(model=model, {}train_dataset=dataset, optimizers=(optimizer, None))",
                                has_arguments ? "args=args, " : ""));
    }
  }

  // Its scope of 16 bits is its own argument, and its loop is the same for any number of micro-batches.
  void accelerate(std::vector<std::string>& out) {
    leave_batch_to_framework();
    hand_on_config(out, "from accelerate import DeepSpeedPlugin",
                   "deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=", ")");
    if (all_.arguments.empty()) return;
    out.push_back(call("accelerator = Accelerator"));
    if (all_.micro_batches > 1) {
      out.push_back(fmt::format("loader = DataLoader(dataset, batch_size={})", all_.micro_batch));
    }
    out.emplace_back("model, optimizer, loader = accelerator.prepare(model, optimizer, loader)");
    if (all_.micro_batches > 1) {
      out.emplace_back(
          "for batch in loader:\n    with accelerator.accumulate(model):\n        loss = loss_of(model, batch)\n"
          "        accelerator.backward(loss)\n        optimizer.step()\n        optimizer.zero_grad()");
    }
  }

  void deepspeed(std::vector<std::string>& out) {
    if (config_.empty() && all_.optimizer.empty()) return;
    if (!all_.optimizer.empty()) config_["zero_allow_untested_optimizer"] = true;
    constexpr const char* kBatch = "train_micro_batch_size_per_gpu";
    const std::string batch = all_.micro_batches > 1 ? all_.micro_batch : "batch_size";
    const bool has_batch = config_.contains(kBatch);  // else DeepSpeed refuses the config
    if (!has_batch) config_[kBatch] = kBatch;
    std::string config = python_text(config_);
    const std::string name = fmt::format("\"{}\"", kBatch);
    if (!has_batch) config.replace(config.rfind(name), name.size(), batch);
    out.emplace_back("import deepspeed");
    out.push_back("config = " + config);
    out.push_back(fmt::format("engine, optimizer, _, _ = deepspeed.initialize(model=model, {}, config=config)",
                              all_.optimizer.empty() ? "model_parameters=model.parameters()" : "optimizer=optimizer"));
  }

  // The training loop, as far as the recipes have a say in it.
  void loop(std::vector<std::string>& out) const {
    const bool accumulates = all_.micro_batches > 1;
    const bool has_step = accumulates || all_.clears_gradients || !all_.scaler.empty();
    if (!has_step && all_.scope.empty()) return;
    if (!all_.scaler.empty()) out.push_back("scaler = " + all_.scaler);
    std::string in;
    if (accumulates) {
      out.push_back(fmt::format("loader = DataLoader(dataset, batch_size={})", all_.micro_batch));
      out.emplace_back("for i, batch in enumerate(loader):");
      in = "    ";
    }
    if (!all_.scope.empty()) out.push_back(in + all_.scope);
    out.push_back(fmt::format("{}{}loss = loss_of(model, batch){}", in, all_.scope.empty() ? "" : "    ",
                              accumulates ? fmt::format(" / {}", all_.micro_batches) : ""));
    out.push_back(in + (all_.scaler.empty() ? "loss.backward()" : "scaler.scale(loss).backward()"));
    if (!has_step) return;
    if (accumulates) {
      out.push_back(fmt::format("{}if (i + 1) % {} == 0:", in, all_.micro_batches));
      in += "    ";
    }
    out.push_back(in + (all_.scaler.empty() ? "optimizer.step()" : "scaler.step(optimizer)"));
    if (!all_.scaler.empty()) out.push_back(in + "scaler.update()");
    out.push_back(in + (all_.has_set_to_none ? "optimizer.zero_grad(set_to_none=True)" : "optimizer.zero_grad()"));
  }

  Recipe all_;
  Json config_ = Json::object();
};

}  // namespace

bool has_config(const Circumstances& circumstances) {
  constexpr std::array<std::string_view, 4> kFrameworks = {"transformers", "lightning", "accelerate", "deepspeed"};
  return std::find(kFrameworks.begin(), kFrameworks.end(), circumstances.framework) != kFrameworks.end();
}

std::string text_of(std::string_view framework, const std::vector<Recipe>& recipes) {
  return Whole(recipes).text(framework);
}

std::string text_of(std::string_view framework, const std::vector<RemedyForm>& forms) {
  std::vector<Recipe> recipes;
  for (const RemedyForm& form : forms) {
    if (form.remedy->recipe != nullptr) {
      recipes.push_back(form.remedy->recipe(form.circumstances));
    } else if (form.remedy->snippets != nullptr) {
      for (const Snippet& snippet : form.remedy->snippets(form.circumstances)) {
        if (snippet.place == Place::python) recipes.push_back({.lines = {snippet.lines}});
      }
    }
  }
  return text_of(framework, recipes);
}

}  // namespace oomscope
