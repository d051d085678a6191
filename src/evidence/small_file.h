// A whole file as text: the small ones that people and other programs write beside a snapshot.
#pragma once

#include <string>

#include "base/result.h"

namespace oomscope {

// `hint` is the next step, whatever the error: file-not-found, file-unreadable, file-is-a-directory, file-too-large (64
// MiB).
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, const std::string& hint);

}  // namespace oomscope
