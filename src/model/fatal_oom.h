// Which of the requests that failed ended the program.
#pragma once

#include <cstdint>
#include <optional>

#include "types/snapshot.h"

namespace oomscope {

// The request that the program died of: the last oom entry, unless the program went on. Reporting an error and cleaning
// up allocate a little too, so it went on if it allocated at least half of the bytes again that had failed.
[[nodiscard]] std::optional<uint32_t> fatal_oom(const Trace& trace);

}  // namespace oomscope
