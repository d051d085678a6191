// Which memory a failure in text is of: by the figures of the card where there are any, else by the message and what
// stands around it.
#pragma once

#include <vector>

#include "analysis/text_facts.h"

namespace oomscope {

struct KindDecision {
  Kind kind = Kind::gpu_oom;
  std::vector<Kind> also;
  Confidence confidence = Confidence::medium;
};

[[nodiscard]] KindDecision decide_by_figures(const CardFigures& card);
// `facts.failure` is there.
[[nodiscard]] KindDecision decide_kind(const TextFacts& facts);

}  // namespace oomscope
