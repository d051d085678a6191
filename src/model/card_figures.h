// The figures of an allocator's message, reconciled: who held what of the card, and where the message contradicts
// itself. Everything is in bytes; what is empty is not known.
//
//   total = allocated + unused + own_outside + sum(others) + free + not_accounted
//
// where free_in_pools is a part of allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "types/text_evidence.h"

namespace oomscope {

enum class Contradiction : uint8_t {
  impossible_value,     // a counter that wrapped around, or a negative one
  total_is_zero,        // a card of 0 bytes: the driver gave no figures
  own_is_zero,          // "this process has 0 bytes" beside what it allocated
  own_listed_as_other,  // "Process N has ..." is the failing process: a container sees the host's pids
  free_covers_request,  // the free figure is at least what was asked for
  reserved_below_allocated,
  allocated_above_total,  // the driver spilled into host memory, or figures of two moments
  request_above_total,    // no setting can help
  impossible_request,     // negative, or more than any machine has: a wrong size
  fraction_omitted,       // much is free and torch 2.1 to 2.5 do not print a memory fraction
};

// A printed figure as bytes; empty where it is negative or so large that a counter wrapped around.
[[nodiscard]] std::optional<int64_t> whole_bytes(const std::optional<double>& printed);

struct CardFigures {
  std::optional<int64_t> tried;
  std::optional<int64_t> total;
  std::optional<int64_t> free;
  std::optional<int64_t> allocated;
  std::optional<int64_t> reserved;
  std::optional<int64_t> unused;  // reserved and not handed out
  // From 2.3 on: free blocks of private pools, which "allocated" includes and no other pool may use.
  std::optional<int64_t> free_in_pools;
  std::optional<int64_t> own;                              // this process on the card, context included
  std::optional<int64_t> limit;                            // of this process; empty where none is set
  std::vector<int64_t> others;                             // listed processes that are not this one
  std::vector<std::pair<int64_t, int64_t>> others_by_pid;  // the same with their numbers in front
  std::vector<Contradiction> contradictions;

  [[nodiscard]] bool has(Contradiction each) const;
  // The request exceeds the limit of this process, which is less than the card.
  [[nodiscard]] bool limit_decides() const;
  // What is held and what is free would serve the request together, and neither does alone.
  [[nodiscard]] bool pieces_cover_request() const;
  // They do with what is free in private pools, and not without.
  [[nodiscard]] bool pools_cover_request() const;
  // Outside this process's allocator, its context and the free memory: listed processes, or what is missing to the
  // total less a usual context where none is listed. Never below 0.
  [[nodiscard]] int64_t foreign() const;
  // Of this process, beside its allocator: context, libraries. Empty where its total is not known.
  [[nodiscard]] std::optional<int64_t> own_outside() const;
  // total less all rows that are known; below 0 where the figures contradict each other.
  [[nodiscard]] std::optional<int64_t> not_accounted() const;
};

[[nodiscard]] CardFigures reconcile_card(const TextMessage& message);

// A limit that is printed where none is set: the largest number there is, by the driver or by the kernel.
[[nodiscard]] bool means_no_limit(double printed_bytes);

// The figures as `why --json` prints them: as printed, and with the process that proved to be the failing one.
[[nodiscard]] PrintedFigures settled_figures(const TextMessage& message, const CardFigures& card);

}  // namespace oomscope
