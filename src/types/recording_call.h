// What starts a recording, in the torch that wrote a snapshot: before 2.1 the call had other arguments.
#pragma once

#include <string>
#include <string_view>

#include "types/snapshot.h"

namespace oomscope {

// Before torch 2.1 the ring of events has one entry unless told otherwise, and events have no stacks.
inline constexpr std::string_view kRecordingArgumentsBefore21 =
    "True, trace_alloc_max_entries=100000, trace_alloc_record_context=True";

// By the keys of its blocks; a file without blocks is taken for a newer one.
[[nodiscard]] bool is_before_torch_2_1(const Snapshot& snapshot);
// With stacks.
[[nodiscard]] std::string recording_call(const Snapshot& snapshot);

}  // namespace oomscope
