// Several ranks of one job use the same card: each failed there, or the message lists processes that are alike.
#include <algorithm>

#include "analysis/rules/log_rules.h"

namespace oomscope {
namespace {

bool failed_with_a_card(const RankFailure& rank) {
  return rank.message->family == Family::allocator && rank.message->gpu && rank.rank;
}

// A GPU's index counts on its own node. Where no node is named, indices that follow the ranks (rank 9 on GPU 1 of 8)
// may be those of several nodes.
bool may_be_several_nodes(const TextFacts& text) {
  constexpr int kMostCards = 16;
  for (int cards = 2; cards <= kMostCards; ++cards) {
    const bool follow = std::all_of(text.ranks.begin(), text.ranks.end(), [cards](const RankFailure& each) {
      return each.node || !failed_with_a_card(each) || *each.rank % cards == *each.message->gpu;
    });
    if (follow) return true;
  }
  return false;
}

// The others hold about as much as this process does, as other ranks of one job would.
bool others_are_alike(const RankFailure& rank) {
  const CardFigures card = reconcile_card(*rank.message);
  return card.foreign() >= card.reserved.value_or(0) / 2;
}

// Ranks that failed on the card of the first one for memory that others hold.
int ranks_on_one_card(const TextFacts& text, const RankFailure*& first) {
  const bool is_doubtful = may_be_several_nodes(text);
  int same = 0;
  for (const RankFailure& each : text.ranks) {
    if (!failed_with_a_card(each)) continue;
    if (first == nullptr) first = &each;
    const bool is_foreign = each.kind == Kind::gpu_oom_other_process && (!is_doubtful || others_are_alike(each));
    same += is_foreign && each.message->gpu == first->message->gpu && each.node == first->node ? 1 : 0;
  }
  return same;
}

// Processes beside this one that hold the same to 2 %: contexts of the other ranks, mostly. 0: they differ.
size_t alike_processes(const CardFigures& card) {
  constexpr size_t kFewest = 2;
  if (card.others.size() < kFewest) return 0;
  const auto [least, most] = std::minmax_element(card.others.begin(), card.others.end());
  return *most - *least <= *most / 50 ? card.others.size() : 0;
}

}  // namespace

std::vector<Finding> find_log_share_card(const CaseFacts& facts) {
  if (facts.text == nullptr) return {};
  const TextFacts& text = *facts.text;
  const RankFailure* first = nullptr;
  const int ranks = ranks_on_one_card(text, first);
  const size_t alike = alike_processes(text.card);
  if (ranks < 2 && alike == 0) return {};
  const std::optional<int> gpu = ranks >= 2 ? first->message->gpu : text.failure->gpu;
  const PhraseValue card{.name = "gpu", .text = gpu ? std::to_string(*gpu) : "?", .phrases = {}};
  const PhraseValue count{
      .name = "ranks", .text = ranks >= 2 ? std::to_string(ranks) : std::to_string(alike), .phrases = {}};
  Finding finding =
      ranks >= 2 ? log_finding(text, "ranks-share-card", {count, card})
                 : log_finding(text, "ranks-contexts", {count, card, size_value("each", text.card.others.front())});
  finding.id = "ranks-share-card";
  finding.confidence = Confidence::medium;
  add_changes(text, {"share-card", "load-on-cpu"}, finding);
  return {finding};
}

}  // namespace oomscope
