// What each module of the model kept for backward, as profile(modules=True) measured it, from the SNAPSHOT.marks.json
// beside a snapshot (docs/formats/marks.md): shapes and modules are in no snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oomscope {

struct ModuleUse {
  std::string name;  // "blocks.7.attn"
  int64_t kept_bytes = 0;
  std::string largest;  // of what it kept: "(8, 12, 1024, 1024) float32"; empty where it kept nothing
};

// Largest first, as written. Empty where the text has none, or what it has makes no sense.
[[nodiscard]] std::vector<ModuleUse> read_modules(std::string_view text);
[[nodiscard]] std::vector<ModuleUse> modules_beside(const std::string& snapshot_path);

}  // namespace oomscope
