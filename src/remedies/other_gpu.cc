// Another card has room.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// The emptiest that a listing shows; else the visible cards less the one that failed; where it was the only one, the
// first that is another.
std::string other_cards(const Circumstances& circumstances) {
  const std::string& visible = circumstances.limits.visible_cards;
  if (circumstances.emptiest_card) return std::to_string(*circumstances.emptiest_card);
  const std::string failing = std::to_string(circumstances.failing_card.value_or(0));
  if (visible.empty()) return failing == "0" ? "1" : "0";
  std::vector<std::string> cards;
  std::stringstream list(visible);
  for (std::string card; std::getline(list, card, ',');) cards.push_back(card);
  if (cards.size() == 1) return cards.front() == "0" ? "1" : "0";
  const auto index = static_cast<size_t>(std::max(0, circumstances.failing_card.value_or(0)));
  if (index < cards.size()) cards.erase(cards.begin() + static_cast<std::ptrdiff_t>(index));
  return fmt::format("{}", fmt::join(cards, ","));
}

}  // namespace

Remedy other_gpu() {
  return {.id = "other-gpu",
          .page = "other-memory-on-card",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && may_have_several_cards(circumstances);
              },
          .snippets =
              [](const Circumstances& circumstances) {
                return environment("CUDA_VISIBLE_DEVICES", other_cards(circumstances));
              }};
}

}  // namespace oomscope
