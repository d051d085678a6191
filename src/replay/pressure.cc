#include "replay/pressure.h"

#include <algorithm>
#include <vector>

#include "caching/sizes.h"

namespace oomscope {
namespace {

class PressureScan {
 public:
  PressureScan(const Timeline& timeline, const AllocatorSettings& settings, const RuleSet& rules)
      : timeline_(timeline), trace_(timeline.trace()), settings_(settings), rules_(rules) {}

  Pressure run() {
    for (const StartSegment& segment : timeline_.start) {
      for (const StartBlock& block : segment.blocks) {
        if (block.state != StartState::unmapped) reserved_ += block.size;
      }
    }
    std::vector<int64_t> retries;  // totals in front of a burst that a segment follows
    int64_t before_burst = 0;
    uint32_t previous = 0;
    for (const uint32_t i : timeline_.driver_events) {
      if (call_between(previous, i)) before_burst = 0;
      previous = i;
      switch (trace_.action[i]) {
        case Action::segment_alloc: allow(i, trace_.size[i], before_burst, retries); break;
        case Action::segment_map: allow(i, request_behind(i), before_burst, retries); break;
        case Action::segment_free:
        case Action::segment_unmap:
          if (before_burst == 0) {
            before_burst = reserved_;
            pressure_.releases = true;
          }
          reserved_ -= trace_.size[i];
          break;
        case Action::oom:
          refuse(i, before_burst);
          before_burst = 0;
          break;
        default: break;
      }
    }
    for (int64_t total : retries)
      pressure_.suspected_retry = pressure_.suspected_retry || total > pressure_.largest_allowed;
    return pressure_;
  }

 private:
  // Does an allocation or a free stand between two driver events, so that they belong to different calls?
  [[nodiscard]] bool call_between(uint32_t from, uint32_t to) const {
    for (uint32_t i = from + 1; i < to; ++i) {
      if (trace_.action[i] == Action::alloc || trace_.action[i] == Action::free_requested) return true;
    }
    return false;
  }

  void allow(size_t event, int64_t alloc_size, int64_t before_burst, std::vector<int64_t>& retries) {
    const bool first_step = event == 0 || trace_.action[event - 1] != Action::segment_map;
    if (first_step) pressure_.largest_allowed = std::max(pressure_.largest_allowed, reserved_ + alloc_size);
    if (before_burst != 0) retries.push_back(before_burst + alloc_size);
    reserved_ += trace_.size[event];
    pressure_.most_reserved = std::max(pressure_.most_reserved, reserved_);
  }

  // The bytes a map step was asked for are not in its event: they follow from the alloc behind it.
  int64_t request_behind(size_t event) {
    const size_t events = trace_.size_events();
    request_ = std::max(request_, event + 1);
    while (request_ < events && trace_.action[request_] != Action::alloc && trace_.action[request_] != Action::oom) {
      ++request_;
    }
    if (request_ >= events) return trace_.size[event];
    return allocation_size(round_size(std::max<int64_t>(trace_.size[request_], 1), settings_, rules_), settings_);
  }

  // The last try came after all releases, unless release_available freed in vain inside a pool scope: then only the
  // first try is certain.
  void refuse(size_t event, int64_t before_burst) {
    pressure_.ooms += 1;
    const int64_t alloc_size = allocation_size(std::max<int64_t>(trace_.size[event], 1), settings_);
    const bool card_full = trace_.addr[event] < static_cast<uint64_t>(alloc_size);
    if (card_full) {
      pressure_.driver_ooms += 1;
      return;
    }
    const bool in_vain = before_burst != 0 && settings_.max_split_size_bytes != kUnlimitedBytes;
    const int64_t total = (in_vain ? before_burst : reserved_) + alloc_size;
    pressure_.smallest_refused = std::min(pressure_.smallest_refused.value_or(total), total);
  }

  const Timeline& timeline_;
  const Trace& trace_;
  const AllocatorSettings& settings_;
  const RuleSet& rules_;
  int64_t reserved_ = 0;
  size_t request_ = 0;  // the alloc or oom behind the last map step
  Pressure pressure_;
};

}  // namespace

Pressure find_pressure(const Timeline& timeline, const AllocatorSettings& settings, const RuleSet& rules) {
  return PressureScan(timeline, settings, rules).run();
}

}  // namespace oomscope
