// The program from arguments to exit code. main.cc only calls it.
#pragma once

#include <string>
#include <vector>

namespace oomscope {

// Exit codes: 0 done (a negative answer is an answer), 1 could not do it, 2 bad usage, 3 with --strict: done on
// incomplete evidence.
[[nodiscard]] int run_program(const std::vector<std::string>& arguments, const std::string& version);

}  // namespace oomscope
