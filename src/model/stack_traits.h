// What a call stack says about an allocation: which part of PyTorch asked for it, and from which line of the program.
//
// Each file and function name is looked at once, each stack once; an event then costs one table look-up.
#pragma once

#include <cstdint>
#include <vector>

#include "types/snapshot.h"

namespace oomscope {

// Bits of StackTraits::seen: frames that the stack holds anywhere.
enum class Trait : uint32_t {
  python = 1U << 0,           // a Python frame
  optimizer = 1U << 1,        // inside an optimizer's step
  optimizer_state = 1U << 2,  // where optimizers make their state: _init_group, init_state
  zero_grad = 1U << 3,
  backward = 1U << 4,            // the call of backward, or the engine's thread (C++ frames)
  recompute = 1U << 5,           // activation checkpointing runs forward again
  module_call = 1U << 6,         // inside a module's forward
  loss = 1U << 7,                // a loss function
  attention = 1U << 8,           // a function or module whose name says attention
  linear = 1U << 9,              // a projection by nn.Linear or MultiheadAttention's in_proj
  convolution = 1U << 10,        // nn.Conv*
  softmax = 1U << 11,            // a softmax with a frame of its own
  module_move = 1U << 12,        // Module.to, cuda, half: the model comes to the card
  module_init = 1U << 13,        // a module is made on the card
  model_load = 1U << 14,         // from_pretrained, load_state_dict
  file_load = 1U << 15,          // torch.load, safetensors
  deep_copy = 1U << 16,          // copy.deepcopy
  parameter_copy = 1U << 17,     // ... of a Parameter: a module is copied
  state_dict = 1U << 18,         // a state_dict or a checkpoint is gathered
  data_loading = 1U << 19,       // DataLoader, collate, pin_memory
  no_grad_function = 1U << 20,   // a function under @torch.no_grad() or @torch.inference_mode()
  generation = 1U << 21,         // generate(): inference token by token
  evaluation = 1U << 22,         // a function outside of all modules whose name says evaluation or validation
  data_parallel = 1U << 23,      // nn.DataParallel moves something between its devices
  distributed = 1U << 24,        // DDP, FSDP, torch.distributed
  own_optimizer = 1U << 26,      // an optimizer's step that is not torch.optim's
  multihead = 1U << 27,          // nn.MultiheadAttention's own function
  library_workspace = 1U << 25,  // C++ frames of cuBLAS and cuDNN that ask for scratch
};

// What the innermost telling frame says.
enum class StackRole : uint8_t {
  none,  // no Python frames
  user,  // Python frames, and none that tells
  forward,
  loss,
  backward,
  optimizer,
  zero_grad,
  model,  // made, moved or loaded into
  file_load,
  copy,
  state_dict,
  data,
};

struct StackTraits {
  uint32_t seen = 0;  // Trait bits
  StackRole role = StackRole::none;
  uint32_t caller = 0;     // hash of the frames outside the outermost module call: from where a model was called
  uint32_t call = 0;       // the innermost of those frames, counted from 1: the line that calls the model
  uint32_t attention = 0;  // hash of the innermost function that says attention, or 0
  [[nodiscard]] bool has(Trait trait) const { return (seen & static_cast<uint32_t>(trait)) != 0; }
};

// By StackId.
[[nodiscard]] std::vector<StackTraits> stack_traits(const Snapshot& snapshot);

}  // namespace oomscope
