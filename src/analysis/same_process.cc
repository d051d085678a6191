#include "analysis/same_process.h"

#include <algorithm>

namespace oomscope {
namespace {

constexpr size_t kSampleSize = 256;
constexpr size_t kSharedAtLeast = 3;  // one may be chance: two processes that ask alike at one moment

uint64_t mixed(uint64_t value) {  // the finalizer of splitmix64: every bit depends on every bit
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

uint64_t event_hash(const Trace& trace, size_t event) {
  const uint64_t what = mixed(trace.addr[event]) ^ mixed(static_cast<uint64_t>(trace.size[event]) * 16 +
                                                         static_cast<uint64_t>(trace.action[event]));
  return mixed(what ^ static_cast<uint64_t>(trace.time_at(event)));
}

}  // namespace

EventSample sample_events(const Trace& trace) {
  EventSample heap;  // the largest of the smallest in front
  for (size_t event = 0; event < trace.size_events(); ++event) {
    if (trace.time_at(event) == 0) continue;
    const uint64_t hash = event_hash(trace, event);
    if (heap.size() == kSampleSize) {
      if (hash >= heap.front()) continue;
      std::pop_heap(heap.begin(), heap.end());
      heap.back() = hash;
    } else {
      heap.push_back(hash);
    }
    std::push_heap(heap.begin(), heap.end());
  }
  std::sort_heap(heap.begin(), heap.end());
  return heap;
}

bool is_same_process(const EventSample& a, const EventSample& b) {
  size_t shared = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++shared;
      ++i;
      ++j;
    } else {
      (a[i] < b[j] ? i : j) += 1;
    }
  }
  return shared >= kSharedAtLeast;
}

}  // namespace oomscope
