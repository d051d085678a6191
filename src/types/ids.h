// Distinct types for the identities that flow through the program.
#pragma once

#include <compare>
#include <cstdint>

namespace oomscope {

enum class StringId : uint32_t { none = 0 };  // index into StringTable; 0 is the empty string
enum class StackId : uint32_t { none = 0 };   // index into StackTable; 0 is the empty stack (no frames recorded)
enum class StreamId : uint64_t {};            // raw stream handle; compared as an unsigned integer, as PyTorch does

// A pool of the caching allocator. {0, 0} is the default pool; a graph capture makes {k, 0}, a user's pool {0, k}.
struct PoolId {
  uint64_t first = 0;
  uint64_t second = 0;
  auto operator<=>(const PoolId&) const = default;
  [[nodiscard]] bool is_default() const { return first == 0 && second == 0; }
};

}  // namespace oomscope
