#include "analysis/framework.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace oomscope {
namespace {

struct Loop {
  std::string_view file;  // a part of its path
  std::string_view framework;
};

// Outer ones first: Trainer and Lightning drive the others.
constexpr std::array<Loop, 6> kLoops = {{{"transformers/trainer.py", "transformers"},
                                         {"lightning/pytorch/trainer/", "lightning"},
                                         {"pytorch_lightning/trainer/", "lightning"},
                                         {"lightning/fabric/", "lightning"},
                                         {"deepspeed/runtime/engine.py", "deepspeed"},
                                         {"accelerate/accelerator.py", "accelerate"}}};

}  // namespace

std::string training_framework(const Snapshot& snapshot) {
  const std::vector<Frame>& frames = snapshot.stacks.frames;
  for (const Loop& loop : kLoops) {
    const bool found = std::any_of(frames.begin(), frames.end(), [&](const Frame& frame) {
      return snapshot.strings.text(frame.filename).find(loop.file) != std::string_view::npos;
    });
    if (found) return std::string(loop.framework);
  }
  return "";
}

}  // namespace oomscope
