// The structure of a run: which events were forward, loss, backward, optimizer step and so on; passes and steps.
//
// Three witnesses, the strongest first: annotations (PyTorch's optimizers write one a step and one a zero_grad by
// themselves, users write oomscope.step:N and oomscope.phase:NAME), call stacks, and the order of events. Backward runs
// in threads of its own, whose requests carry no Python frames: in a recording that has frames elsewhere, a request
// without any is backward's. See Note [How spans are found] in structure.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/stack_traits.h"
#include "model/timeline.h"
#include "types/confidence.h"
#include "types/phase.h"

namespace oomscope {

inline constexpr uint32_t kNoPass = 0xffffffff;

// Events [begin, end) of one phase. The spans of a run follow each other without gaps.
struct Span {
  Phase phase = Phase::unknown;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t pass = kNoPass;  // forward, loss and backward belong to a pass
  int step = 1;             // 1 until the first optimizer step has ended
};

// One call of the model: forward, and backward if it came.
struct Pass {
  uint32_t begin = 0;
  uint32_t forward_end = 0;  // the loss included
  uint32_t end = 0;          // of backward, or forward_end
  bool has_backward = false;
  uint32_t caller = 0;  // StackTraits::caller: from where the model was called
  uint32_t call = 0;    // StackTraits::call: the line alone
  StackId first_stack = StackId::none;
  int step = 1;
  bool says_evaluation = false;  // a function on the way says evaluate, validate, predict
};

struct Structure {
  std::vector<StackTraits> stacks;  // by StackId
  std::vector<Span> spans;
  std::vector<uint32_t> span_of;  // event -> span
  std::vector<Pass> passes;
  std::vector<uint32_t> step_ends;  // event behind the n-th optimizer step (and its zero_grad where it follows)
  Confidence confidence = Confidence::low;
  int64_t frameless_requests = 0;  // requests without Python frames
  int64_t frameless_placed = 0;    // of them, those in a backward that follows a forward
  int64_t requests = 0;
  bool has_frames = false;  // some request has Python frames
  bool trains = false;      // an optimizer step or a backward was seen

  [[nodiscard]] const StackTraits& traits(StackId stack) const { return stacks[static_cast<uint32_t>(stack)]; }
  [[nodiscard]] const Span& span_at(uint32_t event) const { return spans[span_of[event]]; }
};

// The number of the step that an annotation marks: "oomscope.step:3", the profiler's "ProfilerStep#3".
[[nodiscard]] std::optional<int64_t> marked_step(std::string_view annotation);

// Linear in events. Never fails: a run of which nothing is known is one span of Phase::unknown.
[[nodiscard]] Structure find_structure(const Timeline& timeline);

}  // namespace oomscope
