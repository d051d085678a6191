// Phase: what a job was doing at an instant. The one list for recordings and logs, as `why --json` prints it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace oomscope {

enum class Phase : uint8_t {
  unknown,
  start,         // imports, CUDA context, the first allocation
  load,          // the model is made or loaded and moved to the card
  data_loading,  // batches are made or moved
  forward,
  loss,
  backward,
  optimizer_step,
  evaluation,     // validation or inference beside training
  generation,     // inference alone: prefill and decoding
  between_steps,  // after one step and before the next: logging, copies of weights, clearing
  saving,         // a checkpoint is gathered or written
  resume,         // a checkpoint is loaded
  next_model,     // another model is made while the first lives
  second_step,    // of a log: one step went through, so the optimizer's state is there by now
};

inline constexpr std::array<Phase, 15> kPhases = {
    Phase::unknown,    Phase::start,    Phase::load,           Phase::data_loading, Phase::forward,
    Phase::loss,       Phase::backward, Phase::optimizer_step, Phase::second_step,  Phase::evaluation,
    Phase::generation, Phase::saving,   Phase::resume,         Phase::next_model,   Phase::between_steps};

[[nodiscard]] constexpr std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::unknown: return "unknown";
    case Phase::start: return "start";
    case Phase::load: return "load";
    case Phase::data_loading: return "data loading";
    case Phase::forward: return "forward";
    case Phase::loss: return "loss";
    case Phase::backward: return "backward";
    case Phase::optimizer_step: return "optimizer step";
    case Phase::evaluation: return "evaluation";
    case Phase::generation: return "generation";
    case Phase::between_steps: return "between steps";
    case Phase::saving: return "saving";
    case Phase::resume: return "resume";
    case Phase::next_model: return "next model";
    case Phase::second_step: return "second step";
  }
  return "unknown";
}

}  // namespace oomscope
