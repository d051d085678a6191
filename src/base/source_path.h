// Paths of source files, as recordings name them: parts are asked for with slashes, and Windows has backslashes.
#pragma once

#include <algorithm>
#include <string_view>

namespace oomscope {

[[nodiscard]] inline bool is_same_in_path(char a, char b) { return a == b || (a == '\\' && b == '/'); }

[[nodiscard]] inline bool path_has(std::string_view path, std::string_view part) {
  return std::search(path.begin(), path.end(), part.begin(), part.end(), is_same_in_path) != path.end();
}

[[nodiscard]] inline bool path_ends_with(std::string_view path, std::string_view ending) {
  return path.size() >= ending.size() &&
         std::equal(ending.rbegin(), ending.rend(), path.rbegin(),
                    [](char of_ending, char of_path) { return is_same_in_path(of_path, of_ending); });
}

}  // namespace oomscope
