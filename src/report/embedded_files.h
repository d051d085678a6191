// Files that the program carries; cmake/embed.cmake puts them there.
#pragma once

#include <string_view>

namespace oomscope {

[[nodiscard]] std::string_view embedded_page();  // web/dist/report.html
[[nodiscard]] std::string_view embedded_font();  // Roboto, for PNG

}  // namespace oomscope
