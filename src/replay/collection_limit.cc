#include "replay/collection_limit.h"

#include <algorithm>

namespace oomscope {
namespace {

constexpr int64_t kFineBytes = 4096;  // limits that are nearer to each other count as one

class Search {
 public:
  Search(const LimitRange& bounds, const TryLimit& try_limit) : bounds_(bounds), try_limit_(try_limit) {}

  FoundLimit run(bool approaches) {
    std::optional<Explaining> found = follow_hints();
    if (!found && approaches) found = approach();
    if (!found) return {.limit_bytes = furthest_limit_, .range = std::nullopt};
    const LimitRange largest = find_edge({found->limit, found->around.high_bytes}, true);
    const LimitRange smallest = find_edge({found->around.low_bytes, found->limit}, false);
    return {.limit_bytes = smallest.high_bytes, .range = LimitRange{smallest.low_bytes, largest.high_bytes}};
  }

 private:
  struct Explaining {
    int64_t limit;
    LimitRange around;  // beyond it nothing explains the recording
  };

  std::optional<LimitTry> attempt(int64_t limit) {
    const std::optional<LimitTry> tried = try_limit_(limit);
    if (tried && tried->reach > furthest_) {
      furthest_ = tried->reach;
      furthest_limit_ = limit;
    }
    return tried;
  }

  static int64_t middle_of(const LimitRange& range) {
    return range.low_bytes + (range.high_bytes - range.low_bytes) / 2;
  }

  // Each first difference says whether the limit was too low or too high, mostly.
  std::optional<Explaining> follow_hints() {
    LimitRange range = bounds_;
    while (range.low_bytes + kFineBytes < range.high_bytes) {
      const int64_t middle = middle_of(range);
      const std::optional<LimitTry> tried = attempt(middle);
      if (!tried) break;
      if (tried->explains) return Explaining{middle, range};
      (tried->is_too_high ? range.high_bytes : range.low_bytes) = middle;
    }
    return std::nullopt;
  }

  // A decision that one limit gets wrong, one still further off gets wrong too: so replays get the further the nearer
  // the limit is to the true one, on either side.
  std::optional<Explaining> approach() {
    constexpr int64_t kFewestTries = 6;
    constexpr int64_t kMostTries = 48;
    LimitRange range = bounds_;
    for (int64_t tries = kFewestTries; tries <= kMostTries;) {
      const int64_t step = (range.high_bytes - range.low_bytes) / (tries + 1);
      if (step < kFineBytes) break;
      int64_t best = -1;
      int64_t first = 0;  // of the tries that got as far as the best
      int64_t last = 0;
      for (int64_t i = 1; i <= tries; ++i) {
        const int64_t limit = range.low_bytes + i * step;
        const std::optional<LimitTry> tried = attempt(limit);
        if (!tried) return std::nullopt;
        if (tried->explains) return Explaining{limit, {limit - step, range.high_bytes}};
        if (tried->reach > best) first = i;
        if (tried->reach >= best) last = i;
        best = std::max(best, tried->reach);
      }
      // Nothing learnt: the right ones lie between two tries that got equally far.
      if (first == 1 && last == tries) tries *= 2;
      range = {range.low_bytes + (first - 1) * step, range.low_bytes + (last + 1) * step};
    }
    return std::nullopt;
  }

  // Between limits that explain the recording and those that do not; `low_explains`: the low end of `range` does.
  LimitRange find_edge(LimitRange range, bool low_explains) {
    while (range.low_bytes + kFineBytes < range.high_bytes) {
      const int64_t middle = middle_of(range);
      const std::optional<LimitTry> tried = attempt(middle);
      if (!tried) break;
      (tried->explains == low_explains ? range.low_bytes : range.high_bytes) = middle;
    }
    return range;
  }

  const LimitRange bounds_;
  const TryLimit& try_limit_;
  int64_t furthest_ = -1;
  int64_t furthest_limit_ = bounds_.low_bytes;
};

}  // namespace

FoundLimit find_collection_limit(const LimitRange& bounds, bool approaches, const TryLimit& try_limit) {
  return Search(bounds, try_limit).run(approaches);
}

}  // namespace oomscope
