#include "model/card_figures.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/bytes_text.h"
#include "types/context_size.h"

namespace oomscope {
namespace {

// No card and no machine of today has so much: such a figure is a counter that wrapped around.
constexpr double kImpossibleBytes = 1e15;

bool is_impossible(const std::optional<double>& bytes) { return bytes && (*bytes < 0 || *bytes >= kImpossibleBytes); }

// The listed processes and what this one's allocator holds are more than is in use: one of those listed is this one.
bool must_list_itself(const TextMessage& message, const CardFigures& card) {
  if (!card.total || !card.free) return false;
  int64_t sum = *card.reserved;
  for (const auto& [pid, printed] : message.processes) sum += whole_bytes(printed).value_or(0);
  constexpr int64_t kRounded = 64 * kMiB;  // figures of two decimals, read one after the other
  return sum > *card.total - *card.free + kRounded;
}

// The listed process that is this one: where none is called "this process", that whose figure is what the allocator
// holds and a context. Index, or -1.
int own_process(const TextMessage& message, const CardFigures& card) {
  constexpr int64_t kSmallestContext = 64 * kMiB;
  constexpr int64_t kLargestExcess = 3 * kGiB / 2;  // a context, libraries' own memory, graphs
  int found = -1;
  int64_t least = must_list_itself(message, card) ? std::numeric_limits<int64_t>::max() : kLargestExcess + 1;
  for (size_t i = 0; i < message.processes.size(); ++i) {
    const std::optional<int64_t> bytes = whole_bytes(message.processes[i].second);
    if (!bytes) continue;
    const int64_t excess = *bytes - *card.reserved;
    if (excess < kSmallestContext || excess >= least) continue;
    least = excess;
    found = static_cast<int>(i);
  }
  return found;
}

void find_contradictions(const TextMessage& message, CardFigures& card) {
  const auto add = [&](bool holds, Contradiction each) {
    if (holds) card.contradictions.push_back(each);
  };
  PrintedFigures printed = message.figures;
  if (printed[Figure::limit] && means_no_limit(*printed[Figure::limit])) printed[Figure::limit].reset();
  const bool lists_impossible = std::any_of(message.processes.begin(), message.processes.end(),
                                            [](const auto& each) { return is_impossible(each.second); });
  add(lists_impossible || std::any_of(printed.values.begin(), printed.values.end(), is_impossible),
      Contradiction::impossible_value);
  add(printed[Figure::total] && *printed[Figure::total] == 0, Contradiction::total_is_zero);
  add(is_impossible(message.figures[Figure::tried]), Contradiction::impossible_request);
  const std::optional<double>& own = message.figures[Figure::process_total];
  add(own && *own == 0 && card.allocated.value_or(0) > 0, Contradiction::own_is_zero);
  // A page of the driver beside a small request is no contradiction: it hands out 2 MiB at least.
  constexpr int64_t kDriverPage = 2 * kMiB;
  const bool covers = card.tried && card.free && *card.free >= std::max(*card.tried, kDriverPage);
  add(covers, Contradiction::free_covers_request);
  add(card.reserved && card.allocated && *card.reserved < *card.allocated, Contradiction::reserved_below_allocated);
  add(card.total && (card.allocated.value_or(0) > *card.total || card.reserved.value_or(0) > *card.total),
      Contradiction::allocated_above_total);
  add(card.total && card.tried.value_or(0) > *card.total, Contradiction::request_above_total);
  const bool hides_limit = message.vintage == "2.1" || message.vintage == "2.2-2.8";
  add(covers && !card.limit && hides_limit && card.total && *card.free >= *card.total / 10,
      Contradiction::fraction_omitted);
}

}  // namespace

std::optional<int64_t> whole_bytes(const std::optional<double>& printed) {
  if (!printed || !(*printed >= 0 && *printed < kImpossibleBytes)) return std::nullopt;
  return static_cast<int64_t>(*printed);
}

bool means_no_limit(double printed_bytes) { return printed_bytes >= kImpossibleBytes; }

bool CardFigures::limit_decides() const {
  return limit && reserved && (!total || *limit < *total) && *reserved + tried.value_or(0) > *limit;
}

bool CardFigures::pieces_cover_request() const {
  if (!tried || !unused || !free || *unused == 0) return false;
  return *unused < *tried && *free < *tried && *unused + *free >= *tried;
}

bool CardFigures::pools_cover_request() const {
  if (!tried || !unused || !free || !free_in_pools) return false;
  return *unused + *free < *tried && *unused + *free + *free_in_pools >= *tried;
}

bool CardFigures::has(Contradiction each) const {
  return std::find(contradictions.begin(), contradictions.end(), each) != contradictions.end();
}

std::optional<int64_t> CardFigures::own_outside() const {
  if (!own || !reserved || *own < *reserved) return std::nullopt;
  return *own - *reserved;
}

int64_t CardFigures::foreign() const {
  if (!others.empty()) return std::accumulate(others.begin(), others.end(), int64_t{0});
  if (!total || !free || !reserved) return 0;
  const int64_t ours = own && *own >= *reserved ? *own : *reserved + kContextBytes;
  return std::max<int64_t>(*total - *free - ours, 0);
}

std::optional<int64_t> CardFigures::not_accounted() const {
  if (!total || !free || !reserved) return std::nullopt;
  return *total - *free - *reserved - own_outside().value_or(0) -
         std::accumulate(others.begin(), others.end(), int64_t{0});
}

CardFigures reconcile_card(const TextMessage& message) {
  const PrintedFigures& printed = message.figures;
  CardFigures card;
  card.tried = whole_bytes(printed[Figure::tried]);
  card.total = whole_bytes(printed[Figure::total]);
  card.free = whole_bytes(printed[Figure::free]);
  card.allocated = whole_bytes(printed[Figure::allocated]);
  card.limit = whole_bytes(printed[Figure::limit]);
  card.reserved = whole_bytes(printed[Figure::reserved]);
  card.unused = whole_bytes(printed[Figure::reserved_unallocated]);
  if (const std::optional<int64_t> cached = whole_bytes(printed[Figure::cached])) card.unused = cached;
  if (card.allocated && card.unused && !card.reserved) card.reserved = *card.allocated + *card.unused;
  if (card.allocated && card.reserved && !card.unused)
    card.unused = std::max<int64_t>(*card.reserved - *card.allocated, 0);
  // Nothing is asked for 0 bytes, and no card and no limit has so many: such figures say nothing.
  for (std::optional<int64_t>* figure : {&card.tried, &card.total, &card.limit}) {
    if (*figure == 0) figure->reset();
  }
  if (printed[Figure::total] && !card.total) card.free.reset();
  card.free_in_pools = whole_bytes(printed[Figure::private_pools]);
  card.own = whole_bytes(printed[Figure::process_total]);
  if (card.own == 0) card.own.reset();
  const bool names_itself = printed[Figure::process_total].has_value();
  const int own = names_itself || !card.reserved ? -1 : own_process(message, card);
  for (size_t i = 0; i < message.processes.size(); ++i) {
    const std::optional<int64_t> bytes = whole_bytes(message.processes[i].second);
    if (!bytes) continue;
    if (static_cast<int>(i) == own) {
      card.own = bytes;
    } else {
      card.others.push_back(*bytes);
      card.others_by_pid.emplace_back(message.processes[i].first, *bytes);
    }
  }
  find_contradictions(message, card);
  if (own >= 0) card.contradictions.push_back(Contradiction::own_listed_as_other);
  return card;
}

PrintedFigures settled_figures(const TextMessage& message, const CardFigures& card) {
  PrintedFigures figures = message.figures;
  if (card.has(Contradiction::own_listed_as_other)) figures[Figure::process_total] = static_cast<double>(*card.own);
  for (int64_t other : card.others) figures.other_processes.push_back(static_cast<double>(other));
  return figures;
}

}  // namespace oomscope
