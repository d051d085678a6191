// Which line of a stack is the user's own?
#pragma once

#include <optional>
#include <string>

#include "types/snapshot.h"

namespace oomscope {

// The innermost frame that is neither a library's nor the interpreter's, else the innermost that has a file and a line;
// empty for a stack without such a frame (backward threads have none).
[[nodiscard]] std::optional<Frame> user_frame(const Snapshot& snapshot, StackId stack);

// Does the frame belong to an installed package, the standard library or C++?
[[nodiscard]] bool is_library_frame(const Snapshot& snapshot, const Frame& frame);

// "train.py:88 forward"; the folder is left out. Generated files keep a recognisable name.
[[nodiscard]] std::string frame_text(const Snapshot& snapshot, const Frame& frame);

// frame_text of the user's frame; empty for a stack without Python frames, which the report says in its language.
[[nodiscard]] std::string site_text(const Snapshot& snapshot, StackId stack);

// frame_text of the user's line from which a model was called: the innermost of the frames outside of all modules that
// is the user's; empty if no module was called or nothing outside is the user's.
[[nodiscard]] std::string call_text(const Snapshot& snapshot, StackId stack);

}  // namespace oomscope
