// The one table of causes: a file a cause in this folder, for snapshots and logs alike.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "types/finding.h"

namespace oomscope {

struct RunFacts;   // of a recording: steps, phases, categories, growth, replays (analysis/run_facts.h)
struct TextFacts;  // of logs: messages with reconciled figures, order, progress (analysis/text_facts.h)

// What is known of one case. Either may be absent; rules that need what is absent find nothing.
struct CaseFacts {
  const RunFacts* run = nullptr;
  const TextFacts* text = nullptr;
};

// One line of the table. Its guide (remedies/causes.cc) says what helps.
struct Cause {
  std::string_view id;  // "graph-kept": findings[].id, the page docs/causes/ID.md, the words "explain.ID.*"
  std::vector<Finding> (*find)(const CaseFacts&) = nullptr;
};

[[nodiscard]] std::span<const Cause> causes();

}  // namespace oomscope
