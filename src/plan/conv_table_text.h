// convolutions.txt as it is, put into the program by cmake/convolutions.cmake.
#pragma once

#include <string_view>

namespace oomscope {

[[nodiscard]] std::string_view conv_table_text();

}  // namespace oomscope
