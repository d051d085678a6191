// Which messages of failures the run outlived: behind them it went on.
#pragma once

#include <string_view>
#include <vector>

#include "types/text_evidence.h"

namespace oomscope {

struct Survival {
  const TextMessage* message = nullptr;
  size_t log = 0;
  const RunSign* sign = nullptr;  // the last line that shows it; null: the message itself is none of a failure
};

// Whether the name of a process, as the kernel prints it, may be that of a job: Python and what it renames itself to,
// servers of models. Anything else that the kernel ended was another program.
[[nodiscard]] bool may_be_job(std::string_view process);

// Of one log, in its order.
[[nodiscard]] std::vector<Survival> find_survivals(const TextEvidence& evidence, size_t log);

}  // namespace oomscope
