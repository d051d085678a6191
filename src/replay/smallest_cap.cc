// First a bisection below what an unlimited run reserves, then a scan of 3 % to both sides of the edge it found, on a
// grid of 2 MiB or, for long recordings, a coarser one. The scan moves on as long as it meets a surprise at its border.
// Further up, where a fit is rarely lost again, a coarse look at the rest. Of a short recording every cap is tried.
#include "replay/smallest_cap.h"

#include <algorithm>
#include <map>
#include <vector>

#include "caching/sizes.h"
#include "replay/parallel.h"

namespace oomscope {
namespace {

class Search {
 public:
  Search(const RequestStream& requests, const WhatIf& question, const SmallestCapOptions& options)
      : requests_(requests), question_(question), options_(options) {}

  std::optional<SmallestCap> run() {
    WhatIf unlimited = question_;
    unlimited.cap_bytes.reset();
    const Outcome free_run = replay_what_if(requests_, unlimited);
    if (!free_run.completed) return std::nullopt;
    int64_t high = round_up(free_run.peak_reserved, kCapGrid);
    while (!completes(high))
      high += high / 8 / kCapGrid * kCapGrid + kCapGrid;  // collection under a limit may need more
    const int64_t top = high;
    int64_t low = 0;  // not the most bytes live: of scratch that does not fit, a library does without
    while (high - low > kCapGrid) {
      const int64_t middle = low + (high - low) / 2 / kCapGrid * kCapGrid;
      (completes(middle) ? high : low) = middle;
    }
    if (top / kCapGrid <= affordable()) {
      (void)try_all(0, top, kCapGrid);
    } else {
      scan_around(high);
      scan_above(top);
    }
    SmallestCap result = summary();
    const Outcome there = replay(result.smallest_cap_bytes);
    result.address_ties = there.address_ties;
    result.library_tries = there.library_tries;
    return result;
  }

 private:
  bool completes(int64_t cap) {
    auto [entry, made] = tried_.try_emplace(cap, false);
    if (made) entry->second = replay(cap).completed;
    return entry->second;
  }

  Outcome replay(int64_t cap) const {
    WhatIf question = question_;
    question.cap_bytes = cap;
    return replay_what_if(requests_, question);
  }

  // Returns how many replays that took.
  int64_t try_all(int64_t from, int64_t to, int64_t step) {
    std::vector<int64_t> caps;
    for (int64_t cap = from / step * step; cap <= to; cap += step) {
      if (cap > 0 && tried_.count(cap) == 0) caps.push_back(cap);
    }
    std::vector<char> fits(caps.size());  // vector<bool> is not safe to write from several threads
    run_parallel(
        caps.size(), options_.threads, [&](size_t i) { fits[i] = replay(caps[i]).completed ? 1 : 0; },
        options_.progress);
    for (size_t i = 0; i < caps.size(); ++i) tried_[caps[i]] = fits[i] != 0;
    scanned_to_ = std::max(scanned_to_, to);
    return static_cast<int64_t>(caps.size());
  }

  [[nodiscard]] int64_t affordable() const {
    const int64_t per_replay = static_cast<int64_t>(requests_.kind.size()) + 1;
    return std::clamp<int64_t>(options_.event_budget / per_replay, 16, 4000);
  }

  void scan_around(int64_t edge) {
    const int64_t width = std::max(edge * 3 / 100, kCapGrid);
    step_ = std::max(kCapGrid, round_up(2 * width / affordable(), kCapGrid));
    int64_t budget = affordable();
    int64_t from = edge - width;
    int64_t to = edge + width;
    while (budget > 0) {
      const int64_t tried = try_all(from, to, step_);
      if (tried == 0) return;
      budget -= tried;
      // A surprise near a border: look further.
      const SmallestCap now = summary();
      const bool higher = now.largest_failing_bytes > to - width / 3;
      const bool lower = now.first_fit_bytes < from + width / 3 && from > 0;
      if (!higher && !lower) return;
      if (higher) to += width;
      if (lower) from = std::max<int64_t>(0, from - width);
    }
  }

  // Where a cap far above the edge fails, the caps around it are looked at closely.
  void scan_above(int64_t top) {
    const int64_t from = scanned_to_;
    step_above_ = std::max(step_, round_up((top - from) / std::max<int64_t>(affordable() / 2, 16), kCapGrid));
    for (int round = 0; round < 3; ++round) {
      (void)try_all(from, top, step_above_);
      const int64_t failing = summary().largest_failing_bytes;
      if (failing <= from) return;
      const int64_t closest = std::max(step_, round_up(2 * step_above_ / affordable(), kCapGrid));
      if (try_all(failing - step_above_, failing + step_above_, closest) == 0) return;
    }
  }

  [[nodiscard]] SmallestCap summary() const {
    SmallestCap result;
    result.tried = static_cast<int64_t>(tried_.size());
    result.step_bytes = step_;
    result.step_above_bytes = step_above_;
    for (const auto& [cap, fits] : tried_) {
      if (fits && result.first_fit_bytes == 0) result.first_fit_bytes = cap;
      if (!fits) result.largest_failing_bytes = cap;
    }
    for (const auto& [cap, fits] : tried_) {
      if (fits && cap > result.largest_failing_bytes) {
        result.smallest_cap_bytes = cap;
        break;
      }
    }
    result.monotone = result.first_fit_bytes == result.smallest_cap_bytes;
    return result;
  }

  const RequestStream& requests_;
  const WhatIf& question_;
  const SmallestCapOptions& options_;
  std::map<int64_t, bool> tried_;
  int64_t step_ = kCapGrid;
  int64_t step_above_ = kCapGrid;
  int64_t scanned_to_ = 0;
};

}  // namespace

std::optional<SmallestCap> smallest_cap(const RequestStream& requests, const WhatIf& question,
                                        const SmallestCapOptions& options) {
  std::optional<SmallestCap> result = Search(requests, question, options).run();
  if (!result) return std::nullopt;
  result->low_bytes = result->high_bytes = result->smallest_cap_bytes;
  if (result->address_ties == 0 && !requests.from_mid_life) return result;
  SmallestCapOptions coarser = options;
  coarser.event_budget /= 4;
  WhatIf other = question;
  for (const OtherWay& way : kOtherWays) {
    other.policy = way.policy;
    other.start_order = way.start_order;
    const std::optional<SmallestCap> there = Search(requests, other, coarser).run();
    if (!there) continue;
    result->low_bytes = std::min(result->low_bytes, there->smallest_cap_bytes);
    result->high_bytes = std::max(result->high_bytes, there->smallest_cap_bytes);
    result->tried += there->tried;
  }
  return result;
}

}  // namespace oomscope
