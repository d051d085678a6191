// Which framework runs the training loop: the lines to paste are in its words.
#pragma once

#include <string>

#include "types/snapshot.h"

namespace oomscope {

// "transformers", "lightning", "accelerate" or "deepspeed" where a frame of its loop is in the recording, else empty: a
// model of a library in a loop of one's own takes plain PyTorch.
[[nodiscard]] std::string training_framework(const Snapshot& snapshot);

}  // namespace oomscope
