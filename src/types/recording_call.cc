#include "types/recording_call.h"

namespace oomscope {

bool is_before_torch_2_1(const Snapshot& snapshot) {
  return snapshot.features.block_history || (!snapshot.features.block_addresses && !snapshot.blocks.empty());
}

std::string recording_call(const Snapshot& snapshot) {
  const std::string_view arguments = is_before_torch_2_1(snapshot) ? kRecordingArgumentsBefore21 : "stacks=\"python\"";
  return "torch.cuda.memory._record_memory_history(" + std::string(arguments) + ")";
}

}  // namespace oomscope
