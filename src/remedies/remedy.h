// The one catalogue of changes: a file a remedy here, its texts in src/words/*/remedies.json under "remedy.ID.text",
// ".cost" and ".not-when", its page docs/causes/. Snapshot causes, text evidence, fit and check all draw from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/kind.h"
#include "types/phase.h"

namespace oomscope {

// How the effect of a remedy is found.
enum class Effect : uint8_t {
  figures,    // arithmetic on what the evidence says
  replay,     // the recording replayed under other settings
  transform,  // the recording's requests changed, then replayed
  unknown,    // known to help; how much cannot be said beforehand
};

// What is known of the case that a remedy is asked about. Empty: not known.
struct Circumstances {
  Kind kind = Kind::gpu_oom;
  Phase phase = Phase::unknown;
  std::string torch_version;                // "2.3"; decides the names in snippets
  std::optional<int> compute_capability;    // 80 for sm_80
  std::optional<bool> expandable_segments;  // on already?
  std::string framework;                    // "lightning", "transformers", "accelerate", "deepspeed", or empty
  std::optional<int> num_workers;
  std::optional<int64_t> host_limit_bytes;
  bool is_notebook = false;
  bool is_container = false;
};

// Where lines are pasted.
enum class Place : uint8_t { bash, powershell, cmd, python, notebook, dockerfile, sbatch };

struct Snippet {
  Place place;
  std::string lines;  // as pasted, lines parted by newlines
};

struct Remedy {
  std::string_view id;
  Effect effect = Effect::unknown;
  bool (*applies)(const Circumstances&) = nullptr;
  std::vector<Snippet> (*snippets)(const Circumstances&) = nullptr;
};

// Sorted by id. Each file of this folder defines one and remedies.cc lists them.
[[nodiscard]] std::span<const Remedy> remedies();
[[nodiscard]] const Remedy* find_remedy(std::string_view id);

}  // namespace oomscope
