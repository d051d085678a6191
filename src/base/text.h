// What std::string has only from C++23 on.
#pragma once

#include <string_view>

namespace oomscope {

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace oomscope
