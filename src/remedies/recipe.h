// Recipe: what applies one remedy in one framework, in parts, so that several remedies make one text to paste: one
// training loop, one TrainingArguments, one config of DeepSpeed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "remedies/remedy.h"

namespace oomscope {

struct Recipe {
  std::vector<std::string> imports = {};    // lines; each once in the text
  std::vector<std::string> lines = {};      // on the model, before anything holds it
  std::vector<std::string> arguments = {};  // of TrainingArguments, of Lightning's Trainer, of Accelerator
  std::string config = {};                  // part of DeepSpeed's config: JSON
  std::string optimizer = {};               // expression that makes another optimizer
  std::string scope = {};                   // around forward and loss: "with torch.autocast(...):"
  std::string scaler = {};                  // expression that makes a gradient scaler
  int64_t micro_batches = 1;                // of a step
  std::string micro_batch = {};             // samples of one, a number or an expression
  bool clears_gradients = false;            // zero_grad(set_to_none=True) belongs to the loop
  bool has_set_to_none = true;              // this torch knows that argument (since 1.7)
};

// Can the framework hand a config on to DeepSpeed? Plain PyTorch cannot.
[[nodiscard]] bool has_config(const Circumstances& circumstances);

// `framework` as in Circumstances.
[[nodiscard]] std::string text_of(std::string_view framework, const std::vector<Recipe>& recipes);

// The forms of several remedies in one text; an id that has no recipe adds its own lines.
struct RemedyForm {
  const Remedy* remedy = nullptr;
  Circumstances circumstances;
};
[[nodiscard]] std::string text_of(std::string_view framework, const std::vector<RemedyForm>& forms);

}  // namespace oomscope
