#include "analysis/same_failure.h"

#include <algorithm>
#include <cmath>

#include "base/bytes_text.h"
#include "caching/sizes.h"

namespace oomscope {
namespace {

// Messages print two decimals of the largest unit that fits; up to 1,024 bytes exactly.
bool is_printed_as(double printed, int64_t bytes) {
  double unit = 0;
  for (int64_t each : {kKiB, kMiB, kGiB}) {
    if (printed > static_cast<double>(each)) unit = static_cast<double>(each);
  }
  return std::abs(printed - static_cast<double>(bytes)) <= unit * 0.0051 + 0.5;
}

// A message prints what the driver was asked for, a recording what the program did.
bool is_of_request(const TextMessage& message, int64_t request_bytes, int64_t device_free_bytes) {
  const double tried = *message.figures[Figure::tried];
  const int64_t segment_bytes = allocation_size(std::max<int64_t>(request_bytes, 1), AllocatorSettings{});
  if (!is_printed_as(tried, segment_bytes) && !is_printed_as(tried, request_bytes)) return false;
  const std::optional<double>& free = message.figures[Figure::free];
  return !free || is_printed_as(*free, device_free_bytes);
}

bool holds_request(const Snapshot& snapshot, const TextMessage& message) {
  return std::any_of(snapshot.traces.begin(), snapshot.traces.end(), [&](const Trace& trace) {
    for (size_t event = 0; event < trace.size_events(); ++event) {
      const bool is_it = trace.action[event] == Action::oom &&
                         is_of_request(message, trace.size[event], static_cast<int64_t>(trace.addr[event]));
      if (is_it) return true;
    }
    return false;
  });
}

}  // namespace

bool may_be_same_failure(const TextFacts& facts, const Snapshot& snapshot) {
  bool has_figures = false;
  for (const TextEvidence* log : facts.logs) {
    for (const TextMessage& message : log->messages) {
      if (message.family != Family::allocator || !message.figures[Figure::tried]) continue;
      has_figures = true;
      if (holds_request(snapshot, message)) return true;
    }
  }
  return !has_figures;
}

}  // namespace oomscope
