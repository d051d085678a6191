#include "model/stack_traits.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace oomscope {
namespace {

constexpr uint32_t bit(Trait trait) { return static_cast<uint32_t>(trait); }

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

bool is_any(std::string_view text, std::initializer_list<std::string_view> others) {
  return std::find(others.begin(), others.end(), text) != others.end();
}

// What a file's path says, apart from the function. Paths are compared by their ends below torch/, so that virtual
// environments, wheels and checkouts look alike.
enum class File : uint8_t {
  other,
  native,  // C++, or no file
  torch_optim,
  other_optim,  // bitsandbytes, apex, a file named for an optimizer: each function is looked at
  lr_scheduler,
  nn_module,
  nn_modules,
  nn_functional,
  loss_module,
  autograd,
  tensor,
  parameter,
  checkpoint,
  serialization,
  copy,
  grad_mode,
  data_loader,
  data_parallel,
  distributed,
  safetensors,
};

// "fused_adam.py", "optimizer.py"; not "train_adam.py", "optimized_model.py".
bool is_optimizer_file(std::string_view name) {
  const std::string_view stem = name.substr(0, name.rfind('.'));
  const std::string_view last = stem.substr(stem.rfind('_') + 1);
  const std::string_view first = stem.substr(0, stem.find('_'));
  if (is_any(first, {"train", "run", "main", "test", "finetune", "pretrain", "eval", "demo", "example", "bench"})) {
    return false;
  }
  return is_any(last,
                {"optim", "optimizer", "optimizers", "adam", "adamw", "sgd", "lion", "adafactor", "lamb", "muon"});
}

File file_of(std::string_view path) {
  const bool is_python = path.ends_with(".py") || contains_any(path, {"ipykernel", "ipython-input"}) ||
                         (path.starts_with("<") && path != "<built-in>");
  if (!is_python) return File::native;
  std::string_view name = path.substr(path.find_last_of("/\\") + 1);
  const bool in_torch = contains_any(path, {"/torch/", "\\torch\\"});
  if (in_torch) {
    if (name == "lr_scheduler.py" || name == "swa_utils.py") return File::lr_scheduler;
    if (contains_any(path, {"/optim/", "\\optim\\"})) return File::torch_optim;
    if (name == "module.py") return File::nn_module;
    if (name == "loss.py") return File::loss_module;
    if (name == "data_parallel.py" || name == "replicate.py" || name == "parallel_apply.py" ||
        name == "scatter_gather.py" || (name == "comm.py" && contains(path, "parallel"))) {
      return File::data_parallel;
    }
    if (contains_any(path, {"/distributed/", "\\distributed\\"}) || name == "distributed.py") return File::distributed;
    if (name == "functional.py" && contains_any(path, {"/nn/", "\\nn\\"})) return File::nn_functional;
    if (contains_any(path, {"/nn/modules/", "\\nn\\modules\\"})) return File::nn_modules;
    if (contains_any(path, {"/autograd/", "\\autograd\\"})) {
      return name == "grad_mode.py" ? File::grad_mode : File::autograd;
    }
    if (name == "_tensor.py") return File::tensor;
    if (name == "parameter.py") return File::parameter;
    if (name == "checkpoint.py") return File::checkpoint;
    if (name == "serialization.py") return File::serialization;
    if (name == "_contextlib.py") return File::grad_mode;
    if (contains_any(path, {"/utils/data/", "\\utils\\data\\"})) return File::data_loader;
    return File::other;
  }
  if (name == "copy.py" && contains_any(path, {"/lib/python", "\\Lib\\", "\\lib\\"})) return File::copy;
  if (contains(path, "safetensors")) return File::safetensors;
  if (contains_any(path, {"/optim/", "/optimizers/", "\\optim\\", "\\optimizers\\"}) || is_optimizer_file(name)) {
    return File::other_optim;
  }
  return File::other;
}

bool is_loss_function(std::string_view name) {
  constexpr std::array<std::string_view, 9> kEnds = {
      "_loss",  "_cross_entropy", "cross_entropy_with_logits", "ForCausalLMLoss", "_divergence",
      "LossFn", "loss_fn",        "compute_loss_from_logits",  "loss_function"};
  if (is_any(name, {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "kl_div", "binary_cross_entropy",
                    "binary_cross_entropy_with_logits", "ctc_loss", "loss", "criterion"})) {
    return true;
  }
  return std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
}

// "my_eval" has "eval"; "retrieval" has not.
bool has_word(std::string_view name, std::string_view word) {
  const size_t at = name.find(word);
  if (at == std::string_view::npos) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool begins = at == 0 || !is_letter(name[at - 1]);
  const size_t end = at + word.size();
  return begins && (end == name.size() || !is_letter(name[end]));
}

uint32_t native_traits(std::string_view name) {
  if (contains_any(name, {"autograd::Engine::", "PythonEngine::thread_init", "autograd::Node::operator()"})) {
    return bit(Trait::backward);
  }
  if (contains_any(name, {"cublasGetWorkspace", "getCUDABlasLtWorkspace", "parseChosenWorkspace", "cublasHandle",
                          "getCurrentCUDABlasHandle", "cudnn::Workspace", "get_workspace", "getWorkspace"})) {
    return bit(Trait::library_workspace);
  }
  return 0;
}

uint32_t name_traits(std::string_view name) {
  uint32_t traits = 0;
  if (contains_any(name, {"attention", "Attention", "attn"})) traits |= bit(Trait::attention);
  if (is_any(name, {"softmax", "log_softmax"})) traits |= bit(Trait::softmax);
  if (name == "multi_head_attention_forward") traits |= bit(Trait::multihead);
  if (is_any(name, {"generate", "_sample", "_beam_search", "greedy_search"})) traits |= bit(Trait::generation);
  for (std::string_view word : {"evaluate", "eval", "evaluation", "validate", "validation", "valid", "inference",
                                "predict", "validation_step", "test_step", "prediction_step"}) {
    if (has_word(name, word)) traits |= bit(Trait::evaluation);
  }
  return traits;
}

// A frame is its file's class and its function's name.
uint32_t frame_traits(File file, std::string_view name) {
  if (file == File::native) return native_traits(name);
  uint32_t traits = bit(Trait::python);
  switch (file) {
    case File::torch_optim:
    case File::other_optim: {
      if (name == "zero_grad") return traits | bit(Trait::zero_grad);
      if (contains_any(name, {"init_group", "init_state", "lazy_state", "_state_init"})) {
        return traits | bit(Trait::optimizer) | bit(Trait::optimizer_state);
      }
      if (contains_any(name, {"state_dict", "_process_value"})) return traits | bit(Trait::model_load);
      if (file == File::torch_optim) {
        return is_any(name, {"__init__", "add_param_group"}) ? traits : traits | bit(Trait::optimizer);
      }
      const bool steps =
          is_any(name, {"step", "_step", "update_step"}) || contains_any(name, {"adam", "sgd", "lion", "adafactor"});
      if (steps) return traits | bit(Trait::optimizer) | bit(Trait::own_optimizer);
      break;  // a model or a training loop may stand in the same file
    }
    case File::nn_module:
      if (is_any(name, {"_call_impl", "_wrapped_call_impl", "_slow_forward"})) return traits | bit(Trait::module_call);
      if (is_any(name, {"_apply", "to", "cuda", "half", "float", "bfloat16", "convert", "to_empty"})) {
        return traits | bit(Trait::module_move);
      }
      if (contains(name, "load_state_dict") || contains(name, "load_from_state_dict")) {
        return traits | bit(Trait::model_load);
      }
      if (contains(name, "state_dict")) return traits | bit(Trait::state_dict);
      if (name == "zero_grad") return traits | bit(Trait::zero_grad);
      return traits;
    case File::nn_modules:
      if (is_any(name, {"__init__", "reset_parameters", "_reset_parameters"})) return traits | bit(Trait::module_init);
      break;
    case File::loss_module:
      if (name == "forward") return traits | bit(Trait::loss) | bit(Trait::module_call);
      break;
    case File::nn_functional:
      if (is_any(name, {"_in_projection_packed", "_in_projection", "linear"})) traits |= bit(Trait::linear);
      break;
    case File::autograd:
      if (is_any(name, {"backward", "grad", "_engine_run_backward"})) traits |= bit(Trait::backward);
      break;
    case File::tensor:
      if (name == "backward") return traits | bit(Trait::backward);
      if (name == "__deepcopy__") return traits | bit(Trait::deep_copy);
      break;
    case File::parameter:
      if (name == "__deepcopy__") return traits | bit(Trait::deep_copy) | bit(Trait::parameter_copy);
      break;
    case File::checkpoint:
      if (is_any(name, {"recompute_fn", "unpack_hook", "backward", "_run_fn_with_dynamo_disabled"})) {
        traits |= bit(Trait::recompute);
      }
      break;
    case File::serialization:
      if (contains(name, "load") || is_any(name, {"restore_location", "_cuda_deserialize", "_deserialize"})) {
        return traits | bit(Trait::file_load);
      }
      return traits | bit(Trait::state_dict);
    case File::safetensors: return traits | bit(contains(name, "save") ? Trait::state_dict : Trait::file_load);
    case File::copy: return traits | bit(Trait::deep_copy);
    case File::grad_mode:
      if (is_any(name, {"decorate_context", "decorate_no_grad", "__call__"})) {
        return traits | bit(Trait::no_grad_function);
      }
      return traits;
    case File::data_loader: return traits | bit(Trait::data_loading);
    case File::data_parallel: {
      const bool moves = contains_any(name, {"gather", "scatter", "replicate", "broadcast", "reduce_add"});
      return moves ? traits | bit(Trait::data_parallel) : traits;
    }
    case File::distributed: traits |= bit(Trait::distributed); break;
    default: break;
  }
  if (name == "forward") traits |= bit(Trait::module_call);
  if (name == "backward") traits |= bit(Trait::backward);
  if (is_loss_function(name)) traits |= bit(Trait::loss);
  if (contains(name, "from_pretrained")) traits |= bit(Trait::model_load);
  return traits | name_traits(name);
}

// The phase that one frame stands for; the innermost that tells decides.
StackRole role_of(uint32_t traits) {
  const auto has = [&](Trait trait) { return (traits & bit(trait)) != 0; };
  if (has(Trait::optimizer)) return StackRole::optimizer;
  if (has(Trait::zero_grad)) return StackRole::zero_grad;
  if (has(Trait::deep_copy)) return StackRole::copy;
  if (has(Trait::file_load)) return StackRole::file_load;
  if (has(Trait::model_load) || has(Trait::module_move) || has(Trait::module_init)) return StackRole::model;
  if (has(Trait::state_dict)) return StackRole::state_dict;
  if (has(Trait::loss)) return StackRole::loss;
  if (has(Trait::module_call)) return StackRole::forward;
  if (has(Trait::backward)) return StackRole::backward;
  if (has(Trait::data_loading)) return StackRole::data;
  return StackRole::user;
}

uint32_t mixed(uint32_t hash, uint32_t value) { return (hash ^ value) * 0x9e3779b1U + (hash >> 15); }

class TraitTable {
 public:
  explicit TraitTable(const Snapshot& snapshot) : snapshot_(snapshot), files_(snapshot.strings.size(), kUnknown) {
    frames_.reserve(snapshot.stacks.frames.size());
    for (const Frame& frame : snapshot.stacks.frames) frames_.push_back(traits_of(frame));
  }

  [[nodiscard]] StackTraits of_stack(uint32_t begin, uint32_t end) const {
    const StackTable& stacks = snapshot_.stacks;
    StackTraits out;
    uint32_t outermost_call = end;
    for (uint32_t i = begin; i < end; ++i) {
      const uint32_t frame = stacks.frame_ids[i];
      const uint32_t traits = frames_[frame];
      out.seen |= traits;
      if ((traits & bit(Trait::module_call)) != 0) {
        outermost_call = i;
        out.seen &= ~bit(Trait::evaluation);  // inside of modules "predict" is a layer's part
      }
      if (out.attention == 0 && (traits & bit(Trait::attention)) != 0) {
        out.attention = 1 + static_cast<uint32_t>(stacks.frames[frame].name);
      }
      // The innermost frame that tells decides; one that does not makes it at least a user's.
      const bool told = out.role != StackRole::none && out.role != StackRole::user;
      if (!told && traits != 0) {
        const StackRole role = role_of(traits);
        if (role != StackRole::user || (traits & bit(Trait::python)) != 0) out.role = role;
      }
    }
    // Whatever runs inside of backward is backward: recomputed forward, hooks, the compiled functions whose frames name
    // the lines of forward that they come from.
    const bool is_plain = out.role == StackRole::none || out.role == StackRole::user ||
                          out.role == StackRole::forward || out.role == StackRole::loss;
    if (is_plain && (out.has(Trait::recompute) || out.has(Trait::backward))) out.role = StackRole::backward;
    const uint32_t from = outermost_call == end ? begin : outermost_call + 1;
    for (uint32_t i = from; i < end; ++i) {
      const uint32_t frame = stacks.frame_ids[i];
      if ((frames_[frame] & bit(Trait::python)) == 0) continue;
      if (out.call == 0) out.call = frame + 1;
      out.caller = mixed(out.caller, frame + 1);
    }
    return out;
  }

 private:
  static constexpr uint8_t kUnknown = 0xff;

  uint32_t traits_of(const Frame& frame) {
    uint8_t& file = files_[static_cast<uint32_t>(frame.filename)];
    if (file == kUnknown) file = static_cast<uint8_t>(file_of(snapshot_.strings.text(frame.filename)));
    uint32_t traits = frame_traits(static_cast<File>(file), snapshot_.strings.text(frame.name));
    const std::string_view path = snapshot_.strings.text(frame.filename);
    if (static_cast<File>(file) == File::nn_modules) {
      if (path.ends_with("linear.py")) traits |= bit(Trait::linear);
      if (path.ends_with("conv.py")) traits |= bit(Trait::convolution);
    }
    return traits;
  }

  const Snapshot& snapshot_;
  std::vector<uint8_t> files_;    // by StringId: File, or kUnknown
  std::vector<uint32_t> frames_;  // by frame: Trait bits
};

}  // namespace

std::vector<StackTraits> stack_traits(const Snapshot& snapshot) {
  const TraitTable table(snapshot);
  const StackTable& stacks = snapshot.stacks;
  std::vector<StackTraits> traits(stacks.size());
  for (uint32_t i = 1; i < stacks.size(); ++i) traits[i] = table.of_stack(stacks.starts[i], stacks.starts[i + 1]);
  return traits;
}

}  // namespace oomscope
