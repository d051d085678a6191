#include "replay/suspects.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace oomscope {
namespace {

struct LooseEnd {
  uint32_t event = kNoEvent;  // kNoEvent: only the final state shows it
  uint64_t address = 0;
  int64_t size = 0;
  bool sure = false;  // else it is at rest if it was there when the recording began
};

// Whatever has an address, a size, a beginning and an end in the trace. Blocks end in two events, segments in one.
class Ledger {
 public:
  void begin(uint32_t event, uint64_t address, int64_t size) {
    auto [entry, made] = live_.try_emplace(address);
    if (!made) {
      add(event, address, size, true);
      add_all_of(entry->second, address, true);
    }
    entry->second = Life{.begin = event, .request = kNoEvent, .end = kNoEvent, .size = size};
    ended_.try_emplace(address);
  }

  void request(uint32_t event, uint64_t address, int64_t size) {
    auto [entry, made] =
        live_.try_emplace(address, Life{.begin = kNoEvent, .request = event, .end = kNoEvent, .size = size});
    Life& there = entry->second;
    if (made) {
      add_if_ended_before(event, address, size);
      return;
    }
    if (there.request != kNoEvent || there.size != size) {
      add(event, address, size, true);
      add_all_of(there, address, true);
    }
    there.request = event;
  }

  // `requested`: a request must stand before, and at the end too if it is pending.
  void end(uint32_t event, uint64_t address, int64_t size, bool requested) {
    auto entry = live_.find(address);
    if (entry == live_.end()) {
      if (!add_if_ended_before(event, address, size)) add(event, address, size, false);
      return;
    }
    Life there = entry->second;
    live_.erase(entry);
    const bool contradicts = there.size != size || (requested && there.request == kNoEvent);
    if (contradicts || there.begin == kNoEvent) {
      add(event, address, size, contradicts);
      add_all_of(there, address, contradicts);
    }
    there.end = event;
    ended_[address] = there;
  }

  // What is there at the end; then close().
  void remains(uint64_t address, int64_t size, bool requested) {
    auto entry = live_.find(address);
    if (entry != live_.end() && entry->second.size == size && (entry->second.request != kNoEvent) == requested) {
      live_.erase(entry);
    } else if (entry != live_.end()) {
      add(kNoEvent, address, size, true);
    } else if (!add_if_ended_before(kNoEvent, address, size)) {
      add(kNoEvent, address, size, false);
    }
  }

  std::vector<LooseEnd> close() {
    for (const auto& [address, life] : live_) add_all_of(life, address, true);
    return std::move(loose_);
  }

 private:
  struct Life {
    uint32_t begin = kNoEvent;
    uint32_t request = kNoEvent;
    uint32_t end = kNoEvent;
    int64_t size = 0;
  };

  void add(uint32_t event, uint64_t address, int64_t size, bool sure) {
    loose_.push_back(LooseEnd{.event = event, .address = address, .size = size, .sure = sure});
  }
  void add_all_of(const Life& life, uint64_t address, bool sure) {
    for (const uint32_t event : {life.begin, life.request, life.end}) {
      if (event != kNoEvent) add(event, address, life.size, sure);
    }
  }
  // What ends twice, or is there although it ended: this end or the one before is wrong.
  bool add_if_ended_before(uint32_t event, uint64_t address, int64_t size) {
    auto [before, never] = ended_.try_emplace(address);
    if (never) return false;
    add(event, address, size, true);
    add_all_of(before->second, address, true);
    return true;
  }

  std::map<uint64_t, Life> live_;
  std::map<uint64_t, Life> ended_;  // the last life at an address; empty if there was none yet
  std::vector<LooseEnd> loose_;
};

// Disjoint stretches of addresses, each with the event that made it.
class Stretches {
 public:
  void put(uint64_t begin, uint64_t end, uint32_t event) {
    take_out(begin, end, [](uint64_t, uint64_t, uint32_t) {});
    if (begin < end) stretches_[begin] = Stretch{.end = end, .event = event};
  }

  // Takes out what lies in [begin, end), piece by piece.
  template <class Visit>
  void take_out(uint64_t begin, uint64_t end, Visit visit) {
    auto entry = stretches_.upper_bound(begin);
    if (entry != stretches_.begin() && std::prev(entry)->second.end > begin) --entry;
    while (entry != stretches_.end() && entry->first < end) {
      const auto [from, stretch] = *entry;
      entry = stretches_.erase(entry);
      if (from < begin) stretches_[from] = Stretch{.end = begin, .event = stretch.event};
      if (stretch.end > end) stretches_[end] = stretch;
      visit(std::max(from, begin), std::min(stretch.end, end), stretch.event);
    }
  }

 private:
  struct Stretch {
    uint64_t end;
    uint32_t event;
  };
  std::map<uint64_t, Stretch> stretches_;
};

// The same for pages, which are mapped and unmapped in stretches of any length.
class PageLedger {
 public:
  void map(uint32_t event, uint64_t address, int64_t size) {
    const uint64_t end = address + static_cast<uint64_t>(size);
    bool overlaps = false;
    mapped_.take_out(address, end, [&](uint64_t from, uint64_t to, uint32_t by) {
      overlaps = true;
      add(by, from, to, true);
    });
    if (overlaps) add(event, address, end, true);
    mapped_.put(address, end, event);
    unmapped_.take_out(address, end, [](uint64_t, uint64_t, uint32_t) {});
  }

  void unmap(uint32_t event, uint64_t address, int64_t size) {
    const uint64_t end = address + static_cast<uint64_t>(size);
    uint64_t covered = address;
    mapped_.take_out(address, end, [&](uint64_t from, uint64_t to, uint32_t) {
      if (from > covered) add_uncovered(event, covered, from);
      covered = to;
    });
    if (covered < end) add_uncovered(event, covered, end);
    unmapped_.put(address, end, event);
  }

  // What is there at the end; then close().
  void remains(uint64_t address, int64_t size) { unmap(kNoEvent, address, size); }

  std::vector<LooseEnd> close() {
    mapped_.take_out(0, ~uint64_t{0}, [&](uint64_t from, uint64_t to, uint32_t by) { add(by, from, to, true); });
    return std::move(loose_);
  }

 private:
  // Mapped before the recording began, or unmapped twice.
  void add_uncovered(uint32_t event, uint64_t begin, uint64_t end) {
    bool twice = false;
    unmapped_.take_out(begin, end, [&](uint64_t from, uint64_t to, uint32_t by) {
      twice = true;
      add(by, from, to, true);
    });
    add(event, begin, end, twice);
  }

  void add(uint32_t event, uint64_t begin, uint64_t end, bool sure) {
    loose_.push_back(
        LooseEnd{.event = event, .address = begin, .size = static_cast<int64_t>(end - begin), .sure = sure});
  }

  Stretches mapped_;
  Stretches unmapped_;
  std::vector<LooseEnd> loose_;
};

class Search {
 public:
  Search(const Timeline& timeline, size_t most) : timeline_(timeline), trace_(timeline.trace()), most_(most) {}

  std::vector<Suspect> run() {
    Ledger blocks;
    Ledger segments;
    PageLedger pages;
    for (uint32_t event = 0; event < trace_.size_events(); ++event) {
      const uint64_t address = trace_.addr[event];
      const int64_t size = std::max<int64_t>(trace_.size[event], 1);
      switch (trace_.action[event]) {
        case Action::alloc: blocks.begin(event, address, size); break;
        case Action::free_requested: blocks.request(event, address, size); break;
        case Action::free_completed: blocks.end(event, address, size, true); break;
        case Action::segment_alloc: segments.begin(event, address, size); break;
        case Action::segment_free: segments.end(event, address, size, false); break;
        case Action::segment_map: pages.map(event, address, size); break;
        case Action::segment_unmap: pages.unmap(event, address, size); break;
        case Action::oom:
        case Action::snapshot:
        case Action::annotate:
        case Action::unknown: break;
      }
    }
    const Snapshot& snapshot = *timeline_.snapshot;
    for (const SnapshotSegment& segment : snapshot.segments) {
      if (segment.device != timeline_.device) continue;
      if (segment.is_expandable) {
        pages.remains(segment.address, segment.total_size);
      } else {
        segments.remains(segment.address, segment.total_size, false);
      }
      for (uint32_t b = segment.first_block; b < segment.first_block + segment.block_count; ++b) {
        const SnapshotBlock& block = snapshot.blocks[b];
        if (block.state == BlockState::inactive) continue;
        blocks.remains(block.address, block.requested_size, block.state == BlockState::active_pending_free);
      }
    }
    pair(segments.close(), true);
    const std::vector<LooseEnd> loose_pages = pages.close();
    pair(loose_pages, false);
    leave_unmaps_open(loose_pages);
    pair(blocks.close(), true);
    return likeliest();
  }

 private:
  struct Pair {
    Suspect suspect;
    bool same_size;  // the place is as large as the event says
    bool both_sure;
    uint32_t distance;  // in events
  };

  // Loose ends explain each other if one of them is sure. Blocks and segments keep their size; a stretch of pages may
  // begin, or end, wherever another is loose.
  void pair(const std::vector<LooseEnd>& loose, bool of_one_size) {
    std::vector<LooseEnd> sure;
    std::copy_if(loose.begin(), loose.end(), std::back_inserter(sure), [](const LooseEnd& end) { return end.sure; });
    if (sure.size() > most_) sure.resize(most_);
    for (const LooseEnd& a : sure) {
      for (const LooseEnd& b : loose) {
        if (a.event == b.event || (of_one_size && a.size != b.size)) continue;
        add(a.event, b, b.sure, distance(a, b));
        add(b.event, a, b.sure, distance(a, b));
      }
    }
  }

  // What an unmap takes follows from what was mapped, so the engine can name it.
  void leave_unmaps_open(const std::vector<LooseEnd>& loose) {
    for (const LooseEnd& end : loose) {
      if (end.event == kNoEvent || trace_.action[end.event] != Action::segment_unmap) continue;
      pairs_.push_back(Pair{Suspect{.event = end.event, .address = kUnknownAddress}, true, end.sure, 0});
    }
  }

  // The final state is one event behind the last.
  [[nodiscard]] uint32_t distance(const LooseEnd& a, const LooseEnd& b) const {
    const uint32_t last = static_cast<uint32_t>(trace_.size_events());
    const uint32_t first = std::min(a.event, last);
    const uint32_t second = std::min(b.event, last);
    return std::max(first, second) - std::min(first, second);
  }

  void add(uint32_t event, const LooseEnd& place, bool both_sure, uint32_t distance) {
    if (event == kNoEvent) return;
    const uint64_t from_the_end = place.address + static_cast<uint64_t>(place.size - trace_.size[event]);
    for (const uint64_t address : std::set{place.address, from_the_end}) {
      if (address == trace_.addr[event]) continue;
      pairs_.push_back(
          Pair{Suspect{.event = event, .address = address}, place.size == trace_.size[event], both_sure, distance});
    }
  }

  // Sure and near ones first; but every event gets its turn before one gets its second.
  std::vector<Suspect> likeliest() {
    std::stable_sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
      return std::tuple(!a.same_size, !a.both_sure, a.distance) < std::tuple(!b.same_size, !b.both_sure, b.distance);
    });
    std::map<uint32_t, std::vector<uint64_t>> addresses;  // by event
    std::vector<std::pair<size_t, Suspect>> turns;
    for (const Pair& pair : pairs_) {
      std::vector<uint64_t>& of_event = addresses[pair.suspect.event];
      if (of_event.size() >= most_) continue;
      if (std::find(of_event.begin(), of_event.end(), pair.suspect.address) != of_event.end()) continue;
      turns.emplace_back(of_event.size(), pair.suspect);
      of_event.push_back(pair.suspect.address);
    }
    std::stable_sort(turns.begin(), turns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Suspect> suspects;
    for (size_t i = 0; i < turns.size() && i < most_; ++i) suspects.push_back(turns[i].second);
    return suspects;
  }

  const Timeline& timeline_;
  const Trace& trace_;
  size_t most_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::vector<Suspect> find_suspects(const Timeline& timeline, size_t most) {
  if (!timeline.snapshot->complete) return {};
  return Search(timeline, most).run();
}

}  // namespace oomscope
