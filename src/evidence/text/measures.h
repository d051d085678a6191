// Measures against a lack of memory that a text shows to be in force: in a command line, a configuration, code, or in
// what a library says at its start.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace oomscope {

// By the ids of the remedies that would propose them. A setting that is off is none.
void find_measures(std::string_view raw, std::set<std::string, std::less<>>& in_force);

}  // namespace oomscope
