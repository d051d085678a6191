// PoolSpans: what a replay found out about pools that were gone at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/timeline.h"

namespace oomscope {

// Memory is one pool's at a time, so of spans that overlap the later one holds from its begin on.
class PoolSpans {
 public:
  explicit PoolSpans(std::vector<PoolSpan> spans) : spans_(std::move(spans)) {
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const PoolSpan& a, const PoolSpan& b) { return a.begin < b.begin; });
  }

  // Asked with `event` ascending; nullptr if no span held the address then.
  const PoolSpan* at(uint64_t address, uint32_t event) {
    for (; next_ < spans_.size() && spans_[next_].begin <= event; ++next_) open(spans_[next_]);
    auto above = open_.upper_bound(address);
    if (above == open_.begin()) return nullptr;
    const PoolSpan& span = *std::prev(above)->second;
    const bool inside = address - span.address < static_cast<uint64_t>(span.size);
    return inside && event < span.end ? &span : nullptr;
  }

 private:
  void open(const PoolSpan& span) {
    auto first = open_.upper_bound(span.address);
    if (first != open_.begin()) {
      const PoolSpan& before = *std::prev(first)->second;
      if (span.address - before.address < static_cast<uint64_t>(before.size)) --first;
    }
    while (first != open_.end() &&
           (first->first < span.address || first->first - span.address < static_cast<uint64_t>(span.size))) {
      first = open_.erase(first);
    }
    open_[span.address] = &span;
  }

  std::vector<PoolSpan> spans_;  // by begin
  size_t next_ = 0;
  std::map<uint64_t, const PoolSpan*> open_;
};

}  // namespace oomscope
