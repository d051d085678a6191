// A recording's requests as they would be had the program let go of some blocks earlier.
#include <algorithm>

#include "replay/what_if.h"

namespace oomscope {

RequestStream with_earlier_frees(const RequestStream& requests, std::vector<EarlierFree> frees,
                                 bool drops_last_failure) {
  std::stable_sort(frees.begin(), frees.end(),
                   [](const EarlierFree& a, const EarlierFree& b) { return a.event < b.event; });
  constexpr uint32_t kAsRecorded = kNoEvent;
  std::vector<uint32_t> freed_at(requests.size.size(), kAsRecorded);
  for (const EarlierFree& free : frees) {
    if (free.allocation < freed_at.size()) freed_at[free.allocation] = free.event;
  }
  RequestStream out = requests;
  out.kind.clear();
  out.id.clear();
  std::vector<bool> held(freed_at.size(), false);  // malloc was passed on, its earlier free not yet
  size_t next = 0;
  const auto release_up_to = [&](uint32_t event) {
    for (; next < frees.size() && frees[next].event <= event; ++next) {
      const uint32_t id = frees[next].allocation;
      if (id >= held.size() || !held[id]) continue;
      held[id] = false;
      out.kind.push_back(RequestKind::free);
      out.id.push_back(id);
    }
  };
  for (size_t i = 0; i < requests.kind.size(); ++i) {
    const RequestKind kind = requests.kind[i];
    const uint32_t id = requests.id[i];
    if (kind == RequestKind::failed) {
      release_up_to(requests.failures[id].event);
      if (drops_last_failure && id + 1 == requests.failures.size()) continue;
    }
    const bool is_block = kind == RequestKind::malloc || kind == RequestKind::free || kind == RequestKind::free_held ||
                          kind == RequestKind::complete;
    if (kind == RequestKind::malloc) {
      const uint32_t begin = requests.begin[id] == kNoEvent ? 0 : requests.begin[id];
      release_up_to(begin);
      if (freed_at[id] != kAsRecorded) {
        if (freed_at[id] <= begin) continue;
        held[id] = true;
      }
    } else if (is_block && freed_at[id] != kAsRecorded) {
      continue;
    }
    out.kind.push_back(kind);
    out.id.push_back(id);
  }
  return out;
}

}  // namespace oomscope
