// A sweep over event time with the live allocations in an ordered map by offset. Between two events nothing changes, so
// it is enough to look, at each begin, at the neighbours below and above the place that the new allocation takes: the
// map holds disjoint ranges, and if neither neighbour is touched, no other range is.
//
// The packer never sees event times (it works on ranks) and never keeps an ordered set of addresses while it searches
// for overlaps, so an error would have to be made twice, in two ways, to pass.
#include "replay/packing_check.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace oomscope {
namespace {

struct Event {
  uint32_t time = 0;
  bool begins = false;  // ends come first at equal times: ranges are half-open
  uint32_t lifetime = 0;
};

// `what` says which rule is broken: "error.packing.WHAT".
Error wrong(std::string_view what, std::string where, Values values) {
  return {"packing-wrong", "error.packing." + std::string(what), std::move(where), "error.report-bug",
          std::move(values)};
}

std::string range_text(int64_t begin, int64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

bool takes_space(const Lifetime& lifetime) { return lifetime.size_bytes > 0 && lifetime.begin < lifetime.end; }

Result<Done> check_heights(std::span<const Lifetime> lifetimes, const Packing& packing) {
  if (packing.offsets_bytes.size() != lifetimes.size()) {
    return wrong(
        "offsets", "",
        {{"offsets", std::to_string(packing.offsets_bytes.size())}, {"lifetimes", std::to_string(lifetimes.size())}});
  }
  int64_t height_bytes = 0;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (!takes_space(lifetimes[i])) continue;
    int64_t end_bytes = 0;
    if (packing.offsets_bytes[i] < 0 ||
        __builtin_add_overflow(packing.offsets_bytes[i], lifetimes[i].size_bytes, &end_bytes)) {
      return wrong("outside", "",
                   {{"offset", std::to_string(packing.offsets_bytes[i])}, {"lifetime", std::to_string(i)}});
    }
    height_bytes = std::max(height_bytes, end_bytes);
  }
  if (height_bytes == packing.height_bytes) return Done{};
  return wrong("height", "",
               {{"height", std::to_string(height_bytes)}, {"given", std::to_string(packing.height_bytes)}});
}

std::vector<Event> events_in_order(std::span<const Lifetime> lifetimes) {
  std::vector<Event> events;
  events.reserve(2 * lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (!takes_space(lifetimes[i])) continue;
    events.push_back({lifetimes[i].begin, true, static_cast<uint32_t>(i)});
    events.push_back({lifetimes[i].end, false, static_cast<uint32_t>(i)});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return b.begins;
    return a.lifetime < b.lifetime;
  });
  return events;
}

}  // namespace

Result<Done> check_packing(std::span<const Lifetime> lifetimes, const Packing& packing) {
  OOM_TRY([[maybe_unused]] Done valid, check_lifetimes(lifetimes));
  OOM_TRY([[maybe_unused]] Done heights, check_heights(lifetimes, packing));
  std::map<int64_t, uint32_t> live;  // offset -> lifetime
  auto begin_of = [&](uint32_t i) { return packing.offsets_bytes[i]; };
  auto end_of = [&](uint32_t i) { return packing.offsets_bytes[i] + lifetimes[i].size_bytes; };
  for (const Event& event : events_in_order(lifetimes)) {
    uint32_t mine = event.lifetime;
    if (!event.begins) {
      live.erase(begin_of(mine));
      continue;
    }
    auto above = live.lower_bound(begin_of(mine));
    auto below = above == live.begin() ? live.end() : std::prev(above);
    for (auto neighbour : {below, above}) {
      if (neighbour == live.end()) continue;
      uint32_t other = neighbour->second;
      if (end_of(other) <= begin_of(mine) || end_of(mine) <= begin_of(other)) continue;
      return wrong("overlap", "event " + std::to_string(event.time),
                   {{"other", std::to_string(other)},
                    {"other_range", range_text(begin_of(other), end_of(other))},
                    {"mine", std::to_string(mine)},
                    {"mine_range", range_text(begin_of(mine), end_of(mine))}});
    }
    live.emplace(begin_of(mine), mine);
  }
  return Done{};
}

}  // namespace oomscope
