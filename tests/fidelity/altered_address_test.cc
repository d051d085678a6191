// One altered address in a copy of a recording is found, at its event.
//
// Addresses are moved in every way that a different start state, or another pairing of events, could excuse: by a
// little, by a page, to a place that is free, onto another live block, and beyond all segments. The copy is verified as
// a user would, without being told rules or limit.
//
// OOMSCOPE_ALTERED=SAMPLES tries so many events of each action in every large recording too (minutes), and lists what
// was not found at its event.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/verify.h"
#include "support/recordings.h"

namespace oomscope {
namespace {

enum class Move { by_a_block, by_a_page, to_a_free_place, onto_another, beyond_all };
constexpr std::array kMoves = {Move::by_a_block, Move::by_a_page, Move::to_a_free_place, Move::onto_another,
                               Move::beyond_all};
constexpr std::array kMoveNames = {"by 512 B", "by 2 MiB", "to a free place", "onto another", "beyond all"};

struct Altered {
  Action action;
  const char* name;
};
constexpr std::array kActions = {
    Altered{Action::alloc, "alloc"},
    Altered{Action::free_requested, "free_requested"},
    Altered{Action::free_completed, "free_completed"},
    Altered{Action::segment_alloc, "segment_alloc"},
    Altered{Action::segment_free, "segment_free"},
    Altered{Action::segment_map, "segment_map"},
    Altered{Action::segment_unmap, "segment_unmap"},
};

struct Found {
  int64_t altered = 0;
  int64_t found = 0;         // the replay is not exact any more
  int64_t at_its_event = 0;  // and the first difference is the altered event
};
using Results = std::map<std::pair<std::string, std::string>, Found>;  // by action and move

bool is_block_event(Action action) {
  return action == Action::alloc || action == Action::free_requested || action == Action::free_completed;
}

// Where the same kind of thing lies at that moment, and where one lay before: blocks for block events, segments for
// driver events. 0 if nowhere.
struct Elsewhere {
  uint64_t live = 0;
  uint64_t free = 0;
};

Elsewhere elsewhere(const Trace& trace, uint32_t event) {
  const bool blocks = is_block_event(trace.action[event]);
  std::unordered_map<uint64_t, uint32_t> live;
  std::set<uint64_t> gone;
  for (uint32_t i = 0; i < event; ++i) {
    const Action action = trace.action[i];
    if (is_block_event(action) != blocks) continue;
    if (action == Action::alloc || action == Action::segment_alloc || action == Action::segment_map) {
      live[trace.addr[i]] = i;
      gone.erase(trace.addr[i]);
    } else if (action != Action::free_requested && live.erase(trace.addr[i]) > 0) {
      gone.insert(trace.addr[i]);
    }
  }
  Elsewhere found;
  uint32_t youngest = 0;
  for (const auto& [address, since] : live) {
    if (address == trace.addr[event] || since < youngest) continue;
    youngest = since;
    found.live = address;
  }
  gone.erase(trace.addr[event]);
  if (!gone.empty()) found.free = *gone.begin();
  return found;
}

std::optional<uint64_t> moved(const Trace& trace, uint32_t event, Move move) {
  const uint64_t address = trace.addr[event];
  switch (move) {
    case Move::by_a_block: return address + 512;
    case Move::by_a_page: return address - (uint64_t{2} << 20);
    case Move::beyond_all: return address + (uint64_t{1} << 42);
    case Move::to_a_free_place: break;
    case Move::onto_another: break;
  }
  const Elsewhere places = elsewhere(trace, event);
  const uint64_t place = move == Move::to_a_free_place ? places.free : places.live;
  return place == 0 ? std::nullopt : std::optional(place);
}

// Does anything else in the recording tell where this event's segment was? A segment that is released without having
// been used is named once, and then any address is as good as another.
bool is_told_elsewhere(const Snapshot& snapshot, const Trace& trace, uint32_t event) {
  if (trace.action[event] != Action::segment_free) return true;
  auto inside = [&](uint64_t address) {
    return address - trace.addr[event] < static_cast<uint64_t>(trace.size[event]);
  };
  for (uint32_t i = 0; i < trace.size_events(); ++i) {
    if (i != event && trace.action[i] != Action::oom && inside(trace.addr[i])) return true;
  }
  return std::any_of(snapshot.segments.begin(), snapshot.segments.end(),
                     [&](const SnapshotSegment& segment) { return inside(segment.address); });
}

bool shows_misses() { return std::getenv("OOMSCOPE_ALTERED") != nullptr; }

void alter(const Recording& recording, int samples, Results& results) {
  const std::unique_ptr<Snapshot> snapshot = read_recording(recording.path);
  if (snapshot == nullptr || devices_of(*snapshot).empty()) return;
  const int32_t device = devices_of(*snapshot)[0];
  if (static_cast<size_t>(device) >= snapshot->traces.size()) return;
  Trace& trace = snapshot->traces[static_cast<size_t>(device)];
  if (trace.size_events() > 200000 || !verify(*snapshot, device)->exact()) return;
  for (const auto& [action, name] : kActions) {
    std::vector<uint32_t> events;
    for (uint32_t i = 0; i < trace.size_events(); ++i) {
      if (trace.action[i] == action) events.push_back(i);
    }
    for (int k = 0; k < samples && !events.empty(); ++k) {
      const size_t place = events.size() * static_cast<size_t>(2 * k + 1) / static_cast<size_t>(2 * samples);
      const uint32_t event = events[place];
      if (!is_told_elsewhere(*snapshot, trace, event)) continue;
      for (const Move move : kMoves) {
        const std::optional<uint64_t> address = moved(trace, event, move);
        if (!address) continue;
        const uint64_t true_address = trace.addr[event];
        trace.addr.set(event, *address);
        const std::unique_ptr<Verification> v = verify(*snapshot, device);
        trace.addr.set(event, true_address);
        Found& found = results[{name, kMoveNames[static_cast<size_t>(move)]}];
        found.altered += 1;
        found.found += v->exact() ? 0 : 1;
        EXPECT_FALSE(v->exact()) << recording.name << " event " << event;
        EXPECT_EQ(v->replay->allocator().check_invariants(), "") << recording.name << " event " << event;
        const std::optional<Difference>& difference = v->replay->first_difference();
        const bool at_event = difference && difference->event == event;
        found.at_its_event += at_event ? 1 : 0;
        if (at_event || !shows_misses()) continue;
        std::printf("MISS %s %s %u %s %#" PRIx64 " -> %#" PRIx64 ": %d %s\n", recording.name.c_str(), name, event,
                    kMoveNames[static_cast<size_t>(move)], true_address, *address,
                    difference ? static_cast<int>(difference->event) : -1,
                    difference ? difference->what.c_str() : (v->exact() ? "not found" : "final state"));
      }
    }
  }
}

void print(const Results& results) {
  for (const auto& [key, found] : results) {
    std::printf("altered %s %s: %" PRId64 ", found %" PRId64 ", at its event %" PRId64 "\n", key.first.c_str(),
                key.second.c_str(), found.altered, found.found, found.at_its_event);
  }
}

TEST(AlteredAddress, IsFoundAtItsEvent) {
  const char* asked = std::getenv("OOMSCOPE_ALTERED");
  const bool everywhere = asked != nullptr && std::filesystem::is_directory(large_recordings() / "h200");
  const int samples = asked != nullptr ? std::max(std::atoi(asked), 1) : 2;
  Results results;
  const std::filesystem::path root = everywhere ? large_recordings() / "h200" : small_recordings();
  for (const Recording& recording : recordings_below(root)) alter(recording, samples, results);
  print(results);
  Found all;
  for (const auto& [key, found] : results) {
    all.altered += found.altered;
    all.found += found.found;
    all.at_its_event += found.at_its_event;
  }
  std::printf("altered addresses: %" PRId64 ", found %" PRId64 ", at their event %" PRId64 "\n", all.altered, all.found,
              all.at_its_event);
  EXPECT_EQ(all.found, all.altered);
  EXPECT_GE(all.at_its_event * 100, all.altered * 99);
}

}  // namespace
}  // namespace oomscope
