// `why` over logs as a document. Findings are those of the rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/text_facts.h"
#include "report/document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

// What the log stands beside. A recording of the same failure says it better: of the log its place and caveats remain.
enum class Beside : uint8_t { nothing, same_failure, other_failure };

[[nodiscard]] std::vector<Section> text_sections(const TextFacts& facts, std::span<const Finding> findings,
                                                 Language language, Beside beside = Beside::nothing);
// Always English.
[[nodiscard]] nlohmann::ordered_json text_payload(const TextFacts& facts, std::span<const Finding> findings);

}  // namespace oomscope
