#include "model/fatal_oom.h"

namespace oomscope {

std::optional<uint32_t> fatal_oom(const Trace& trace) {
  int64_t allocated_since = 0;
  for (size_t i = trace.size_events(); i-- > 0;) {
    if (trace.action[i] == Action::alloc) {
      if (__builtin_add_overflow(allocated_since, trace.size[i], &allocated_since)) return std::nullopt;
    }
    if (trace.action[i] != Action::oom) continue;
    if (allocated_since > 0 && allocated_since >= trace.size[i] / 2) return std::nullopt;
    return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

}  // namespace oomscope
