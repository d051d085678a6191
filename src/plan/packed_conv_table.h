// convolutions.txt.zst as it is, put into the program by cmake/convolutions.cmake.
#pragma once

#include <string_view>

namespace oomscope {

[[nodiscard]] std::string_view packed_conv_table();

}  // namespace oomscope
