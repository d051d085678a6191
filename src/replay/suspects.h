// Suspects: which one event has a wrong address?
//
// Where a recording that was damaged in one place first differs from the engine is often not that place. A wrong
// address leaves two loose ends: something that begins and never ends, and something that ends and never began. By
// itself the second looks as if it had been there when the recording started, and with such a start the replay goes
// another way long before the event.
//
//   alloc A' (should be A) .............. free A           A' never ends, A never began
//   alloc A ... free_requested A' ....... free_completed A A' and A have half a free each
//   segment_alloc S ..... segment_free S' (should be S)    S never ends, S' never began
//
// So every event at a loose end is a suspect, and the address of another one of the same size is what it may have been.
// The one suspect with which everything replays is the event (src/replay/verify.cc tries them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/timeline.h"

namespace oomscope {

inline constexpr uint64_t kUnknownAddress = ~uint64_t{0};

struct Suspect {
  uint32_t event = 0;
  uint64_t address = 0;  // what it may have been; kUnknownAddress: the engine may tell, if the event says nothing
  bool operator==(const Suspect&) const = default;
};

// At most `most`, the likeliest first. Needs a snapshot that is complete.
[[nodiscard]] std::vector<Suspect> find_suspects(const Timeline& timeline, size_t most);

}  // namespace oomscope
