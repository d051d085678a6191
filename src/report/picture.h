// What a page shows, as drawings: small charts of the ranks, and all of it as one picture for SVG and PNG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report_page.h"

namespace oomscope {

struct RankPicture {
  Drawing chart;  // its title is the rank's name
  std::string numbers;
  bool failed = false;
  bool stands_out = false;
};
// Small multiples of allocated memory: one scale for all, those that stand out in another colour.
[[nodiscard]] std::vector<RankPicture> rank_pictures(const RanksReport& report, Language language);

// Of a row of the balance, by its id: what lives is strong, what is free lighter, what is not ours grey.
[[nodiscard]] std::string_view balance_colour(std::string_view id);

// The most that any of the page's recordings reserved or could have.
[[nodiscard]] int64_t common_scale(const Page& page);

// The ranks, or what differs between two recordings; then timelines, and the balance. Nothing of a log: height 0.
[[nodiscard]] Drawing picture_of(const Page& page, Language language);

}  // namespace oomscope
