// The ranks of a job as a document: who failed, who is the odd one, groups and ranks as tables.
#pragma once

#include <string>
#include <vector>

#include "analysis/ranks.h"
#include "report/document.h"
#include "words/words.h"

namespace oomscope {

struct RanksReport {
  std::vector<Rank> ranks;
  RankComparison comparison;
  Caveats caveats;
};

// "rank 3", "node 1 rank 3"; with a device where the file holds several; the file's name where it tells no rank.
[[nodiscard]] std::string rank_label(const Rank& rank, bool with_device, Language language);

[[nodiscard]] std::vector<Section> ranks_sections(const RanksReport& report, Language language);
// `explained` is the payload of `why` for the chosen rank, or null.
[[nodiscard]] nlohmann::ordered_json ranks_payload(const RanksReport& report, nlohmann::ordered_json explained);

}  // namespace oomscope
