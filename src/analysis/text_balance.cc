#include "analysis/text_balance.h"

#include <algorithm>

namespace oomscope {
namespace {

void add_row(TextFacts& facts, const char* name, int64_t bytes, const char* source, bool is_outside = false) {
  facts.balance.push_back(BalanceRow{.name = {.key = std::string("text.row-") + name},
                                     .bytes = bytes,
                                     .source = {.key = std::string("text.from-") + source},
                                     .is_outside = is_outside});
  facts.balance_total_bytes += bytes;
}

// The largest of the listed processes by their numbers, the rest together.
void add_others(TextFacts& facts) {
  constexpr size_t kNamed = 3;
  std::vector<std::pair<int64_t, int64_t>> listed = facts.card.others_by_pid;
  std::stable_sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  int64_t rest = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    if (i >= kNamed) {
      rest += listed[i].second;
      continue;
    }
    add_row(facts, "other-process", listed[i].second, "message", true);
    facts.balance.back().name.values.push_back({.name = "pid", .text = std::to_string(listed[i].first), .phrases = {}});
  }
  if (rest > 0) add_row(facts, "others", rest, "message", true);
}

// What is free, in view of a limit. A figure that is impossible makes no row.
void add_free(TextFacts& facts) {
  const CardFigures& card = facts.card;
  if (!card.free) return;
  const bool is_limited = card.limit && card.reserved && *card.limit < card.total.value_or(0);
  if (!is_limited) return add_row(facts, "free", *card.free, "message", true);
  const int64_t left = std::clamp<int64_t>(*card.limit - *card.reserved, 0, *card.free);
  add_row(facts, "left-by-limit", left, "limit");
  add_row(facts, "free-beyond-limit", *card.free - left, "message", true);
}

// Where the rest of the card may be.
const char* source_of_rest(const CardFigures& card, int64_t rest) {
  if (rest < 0) return "contradiction";
  if (!card.free || !card.reserved || !card.allocated) return "rest-with-impossible";
  return card.own ? "rest" : "rest-with-context";
}

// What PyTorch holds, or the whole process where the figures of the allocator are impossible.
void add_own(TextFacts& facts) {
  const CardFigures& card = facts.card;
  if (!card.allocated) {
    if (card.own) return add_row(facts, "own", *card.own, "message");
    if (card.reserved) add_row(facts, "reserved", *card.reserved, "message");
    return;
  }
  const int64_t pools = std::min(card.free_in_pools.value_or(0), *card.allocated);
  add_row(facts, "allocated", *card.allocated - pools, pools > 0 ? "less-pools" : "message");
  if (pools > 0) add_row(facts, "pools", pools, "message");
  if (card.unused.value_or(0) > 0) add_row(facts, "unused", *card.unused, "message");
  if (const std::optional<int64_t> outside = card.own_outside(); outside && *outside > 0) {
    add_row(facts, "own-outside", *outside, card.has(Contradiction::own_listed_as_other) ? "pid-is-self" : "difference",
            true);
  }
}

}  // namespace

void fill_balance(TextFacts& facts) {
  const CardFigures& card = facts.card;
  const bool is_complete = card.total && card.free && card.allocated && card.reserved;
  if (!is_complete && !card.has(Contradiction::impossible_value) && !card.has(Contradiction::total_is_zero)) return;
  add_own(facts);
  add_others(facts);
  add_free(facts);
  if (!card.total || facts.balance.empty()) return;
  const int64_t rest = *card.total - facts.balance_total_bytes;
  if (rest != 0) add_row(facts, "not-accounted", rest, source_of_rest(card, rest), true);
}

}  // namespace oomscope
