// What the system says went wrong, as words that src/words translates: "system.no-space". Text of the system itself
// where the number is none of the usual ones.
#pragma once

#include <string>

namespace oomscope {

[[nodiscard]] std::string system_error(int error_number);

}  // namespace oomscope
