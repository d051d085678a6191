// Limits that a text shows to be in force: in a command line, a job script, a pod's description, what ulimit or sysctl
// print.
#pragma once

#include <string_view>

#include "types/limits_in_force.h"

namespace oomscope {

// What was found before stays, unless the text shows a larger one.
void find_limits(std::string_view raw, LimitsInForce& limits);

}  // namespace oomscope
