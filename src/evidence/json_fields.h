// Fields of the JSON that people and other programs write beside a snapshot: whatever is of another type is not there.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace oomscope {

// Empty: none, or no text.
[[nodiscard]] inline std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace oomscope
