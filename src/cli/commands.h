// The commands of the program, each from its own file.
#pragma once

#include <vector>

#include "cli/command.h"

namespace oomscope {

[[nodiscard]] Command why_command();
[[nodiscard]] Command show_command();
[[nodiscard]] Command verify_command();
[[nodiscard]] Command replay_command();
[[nodiscard]] Command diff_command();
[[nodiscard]] Command fit_command();
[[nodiscard]] Command report_command();
[[nodiscard]] Command baseline_command();

// Those that can run, in the order of --help.
[[nodiscard]] std::vector<Command> all_commands();

}  // namespace oomscope
