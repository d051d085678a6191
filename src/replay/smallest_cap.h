// The smallest memory a recording completes in, under given settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "replay/what_if.h"

namespace oomscope {

inline constexpr int64_t kCapGrid = int64_t{2} << 20;  // reserved memory comes in multiples of it

struct SmallestCapOptions {
  int threads = 1;
  int64_t event_budget = 60'000'000;  // how many requests all replays together may take; decides how fine the scan is
  std::function<void(size_t done, size_t total)> progress;
};

// "Fits" is not monotone in the cap: near the edge it can flip several times. So there are three numbers.
struct SmallestCap {
  int64_t smallest_cap_bytes = 0;  // from here on every larger cap that was tried completes
  int64_t low_bytes = 0;           // the least and the most that it is, by what no recording tells: see OutcomeRange
  int64_t high_bytes = 0;
  int64_t first_fit_bytes = 0;        // the lowest cap that completes at all
  int64_t largest_failing_bytes = 0;  // 0: none that was tried fails
  bool monotone = true;
  int64_t tried = 0;                    // replays made
  int64_t step_bytes = kCapGrid;        // of the scan around the edge
  int64_t step_above_bytes = kCapGrid;  // of the scan from there up to what an unlimited run reserves
  int64_t address_ties = 0;             // of the run at smallest_cap_bytes; 0: does not hang on driver addresses
  int64_t library_tries = 0;            // of the same
};

// Empty if the recording does not complete even without a limit (this torch would stop in an assertion, say).
[[nodiscard]] std::optional<SmallestCap> smallest_cap(const RequestStream& requests, const WhatIf& question,
                                                      const SmallestCapOptions& options);

}  // namespace oomscope
