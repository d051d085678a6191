// Whom the kernel ended, by its own lines.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "types/text_evidence.h"

namespace oomscope {

// The processes of loader workers that ended.
[[nodiscard]] std::set<int64_t> worker_pids(std::span<const TextEvidence> logs);

// Of all that the kernel ended the one that the log tells of, else one that may be the job, else the first; null: none.
[[nodiscard]] const TextMessage* find_victim(std::span<const TextEvidence> logs);

}  // namespace oomscope
