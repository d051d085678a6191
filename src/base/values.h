// What stands for {name} in a sentence of src/words/. A text that is itself a key there is said in its place.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace oomscope {

using Values = std::vector<std::pair<std::string, std::string>>;

}  // namespace oomscope
