// The limit of a recording under garbage collection, found by trying: collection begins at a share of it, so that every
// wrong limit meets a difference sooner or later.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace oomscope {

struct LimitRange {
  int64_t low_bytes = 0;
  int64_t high_bytes = 0;
};

// What a replay under one limit shows.
struct LimitTry {
  bool explains = false;     // no difference, and no release that nobody called for
  int64_t reach = 0;         // event of the first difference; the largest number if there is none
  bool is_too_high = false;  // as the first difference has it; that may mislead
};
// Empty: no more may be tried.
using TryLimit = std::function<std::optional<LimitTry>(int64_t limit_bytes)>;

struct FoundLimit {
  int64_t limit_bytes = 0;          // the smallest that explains the recording; else the one that gets furthest
  std::optional<LimitRange> range;  // of the limits that explain it, to 4 KiB; empty: none was found
};

// `approaches`: where differences mislead, too, at the cost of some hundred tries.
[[nodiscard]] FoundLimit find_collection_limit(const LimitRange& bounds, bool approaches, const TryLimit& try_limit);

}  // namespace oomscope
