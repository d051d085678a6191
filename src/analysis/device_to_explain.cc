#include <algorithm>

#include "analysis/why.h"

namespace oomscope {

int32_t device_to_explain(const Snapshot& snapshot, const std::vector<int32_t>& devices, Caveats& caveats) {
  std::string list;
  std::vector<std::pair<int64_t, int64_t>> weights(snapshot.traces.size());  // time of its failure, bytes it holds
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device >= 0 && static_cast<size_t>(segment.device) < weights.size())
      weights[static_cast<size_t>(segment.device)].second += segment.total_size;
  }
  int32_t chosen = devices.front();
  for (int32_t device : devices) {
    const Trace& trace = snapshot.traces[static_cast<size_t>(device)];
    const auto failed = std::find(trace.action.rbegin(), trace.action.rend(), Action::oom);
    const auto at = static_cast<size_t>(trace.action.rend() - failed);
    if (at > 0) weights[static_cast<size_t>(device)].first = std::max<int64_t>(trace.time_at(at - 1), 1);
    if (weights[static_cast<size_t>(device)] > weights[static_cast<size_t>(chosen)]) chosen = device;
    list += (list.empty() ? "" : ", ") + std::to_string(device);
  }
  if (devices.size() > 1) {
    caveats.push_back(Caveat{.code = "one-of-devices",
                             .values = {{"device", std::to_string(chosen)}, {"devices", list}},
                             .source = CaveatSource::model});
  }
  return chosen;
}

}  // namespace oomscope
