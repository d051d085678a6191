// The nearest known word to a misspelt one, for settings keys, commands, options and card names.
#pragma once

#include <string_view>
#include <vector>

namespace oomscope {

// Edits (insert, delete, replace, swap of neighbours) between two words, ASCII case ignored.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest edits, at most a third of the longer word's letters; the first of equals. Empty: none
// is near, or the word is longer than 64 characters (nobody misspells that, and the table would be large).
[[nodiscard]] std::string_view did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace oomscope
