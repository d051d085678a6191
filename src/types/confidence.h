// How sure a statement is. Each use says beside it why, and what would raise it.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomscope {

enum class Confidence : uint8_t { high, medium, low };

[[nodiscard]] constexpr std::string_view name_of(Confidence confidence) {
  switch (confidence) {
    case Confidence::high: return "high";
    case Confidence::medium: return "medium";
    case Confidence::low: return "low";
  }
  return "low";
}

}  // namespace oomscope
