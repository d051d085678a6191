// write_file: what a command makes besides its answer.
#pragma once

#include <string>

#include "base/result.h"

namespace oomscope {

// Replaces the file. Error: output-not-written, with what the system says.
[[nodiscard]] Result<Done> write_file(const std::string& path, const std::string& bytes);

}  // namespace oomscope
