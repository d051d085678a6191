// `replay` and its variants as documents.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/smallest_cap.h"
#include "replay/sweep.h"
#include "replay/verdict.h"
#include "replay/verify.h"
#include "report/document.h"

namespace oomscope {

struct ReplayResult {
  std::string conf;  // the settings of the run, as a conf string
  std::optional<int64_t> cap_bytes;
  OutcomeRange outcome;
  std::vector<Verdict> verdicts;
  Caveats caveats;
};
[[nodiscard]] Document replay_document(const ReplayResult& result, const Verification& verification, Language language);

struct SweepResult {
  std::optional<int64_t> cap_bytes;
  std::vector<SweepRun> runs;
  int64_t floor_bytes = 0;
  int64_t page_floor_bytes = 0;
  int64_t packing_bytes = 0;
  Caveats caveats;
};
[[nodiscard]] Document sweep_document(const SweepResult& result, const Verification& verification, Language language);

[[nodiscard]] Document smallest_cap_document(const std::string& conf, const SmallestCap& found, const Caveats& caveats,
                                             const Verification& verification, Language language);

}  // namespace oomscope
