// First a bisection between the most bytes ever live (less is impossible) and what an unlimited run reserves, then a
// scan of 3 % to both sides of the edge it found, on a grid of 2 MiB or, for long recordings, a coarser one. The scan
// moves on as long as it meets a surprise at its border.
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
    int64_t low = std::max<int64_t>(round_up(free_run.peak_requested, kCapGrid) - kCapGrid, 0);
    while (high - low > kCapGrid) {
      const int64_t middle = low + (high - low) / 2 / kCapGrid * kCapGrid;
      (completes(middle) ? high : low) = middle;
    }
    scan_around(high, free_run);
    SmallestCap result = summary();
    result.address_ties = replay(result.smallest_cap_bytes).address_ties;
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

  void scan_around(int64_t edge, const Outcome& free_run) {
    const int64_t floor = round_up(free_run.peak_requested, kCapGrid);
    const int64_t per_replay = static_cast<int64_t>(requests_.kind.size()) + 1;
    const int64_t affordable = std::clamp<int64_t>(options_.event_budget / per_replay, 16, 4000);
    int64_t width = edge * 3 / 100;
    step_ = std::max(kCapGrid, round_up(2 * width / affordable, kCapGrid));
    int64_t budget = affordable;
    int64_t from = std::max(floor, edge - width);
    int64_t to = edge + width;
    while (budget > 0) {
      std::vector<int64_t> caps;
      for (int64_t cap = from / step_ * step_; cap <= to; cap += step_) {
        if (cap > 0 && tried_.count(cap) == 0) caps.push_back(cap);
      }
      if (caps.empty()) return;
      std::vector<char> fits(caps.size());  // vector<bool> is not safe to write from several threads
      run_parallel(
          caps.size(), options_.threads, [&](size_t i) { fits[i] = replay(caps[i]).completed ? 1 : 0; },
          options_.progress);
      for (size_t i = 0; i < caps.size(); ++i) tried_[caps[i]] = fits[i] != 0;
      budget -= static_cast<int64_t>(caps.size());
      // A surprise near a border: look further.
      const SmallestCap now = summary();
      const bool higher = now.largest_failing_bytes > to - width / 3;
      const bool lower = now.first_fit_bytes < from + width / 3 && from > floor;
      if (!higher && !lower) return;
      if (higher) to += width;
      if (lower) from = std::max(floor, from - width);
    }
  }

  [[nodiscard]] SmallestCap summary() const {
    SmallestCap result;
    result.tried = static_cast<int64_t>(tried_.size());
    result.step_bytes = step_;
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
};

}  // namespace

std::optional<SmallestCap> smallest_cap(const RequestStream& requests, const WhatIf& question,
                                        const SmallestCapOptions& options) {
  return Search(requests, question, options).run();
}

}  // namespace oomscope
