// StackInterner: distinct frames and distinct stacks of a StackTable, found again by content.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "types/snapshot.h"

namespace oomscope {

class StackInterner {
 public:
  explicit StackInterner(StackTable& table) : table_(table), frame_slots_(256, 0), stack_slots_(256, 0) {}

  uint32_t intern_frame(const Frame& frame);
  StackId intern_stack(std::span<const uint32_t> frame_ids);
  [[nodiscard]] int64_t memory_bytes() const;

 private:
  [[nodiscard]] std::span<const uint32_t> frames_of(uint32_t stack) const;

  StackTable& table_;
  std::vector<uint32_t> frame_slots_;  // id + 1, 0 = empty; power-of-two size
  std::vector<uint32_t> stack_slots_;  // id, 0 = empty (stack 0 is never looked up)
};

}  // namespace oomscope
