// `why` over logs as a document. Findings are those of the rules.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/text_facts.h"
#include "report/document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

[[nodiscard]] std::vector<Section> text_sections(const TextFacts& facts, std::span<const Finding> findings,
                                                 Language language);
// Always English.
[[nodiscard]] nlohmann::ordered_json text_payload(const TextFacts& facts, std::span<const Finding> findings);

}  // namespace oomscope
