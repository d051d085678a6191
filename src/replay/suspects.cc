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
      add_all_of(*entry, true);
    }
    entry->second = Entry{.begin = event, .request = kNoEvent, .size = size};
    seen_.insert(address);
  }

  void request(uint32_t event, uint64_t address, int64_t size) {
    auto [entry, made] = live_.try_emplace(address, Entry{.begin = kNoEvent, .request = event, .size = size});
    Entry& there = entry->second;
    if (made) {
      if (!seen_.insert(address).second) add(event, address, size, true);
      return;
    }
    if (there.request != kNoEvent || there.size != size) {
      add(event, address, size, true);
      add_all_of(*entry, true);
    }
    there.request = event;
  }

  // `requested`: a request must stand before.
  void end(uint32_t event, uint64_t address, int64_t size, bool requested) {
    auto entry = live_.find(address);
    if (entry == live_.end()) {
      add(event, address, size, !seen_.insert(address).second);
      return;
    }
    const Entry& there = entry->second;
    const bool contradicts = there.size != size || (requested && there.request == kNoEvent);
    if (contradicts || there.begin == kNoEvent) {
      add(event, address, size, contradicts);
      add_all_of(*entry, contradicts);
    }
    live_.erase(entry);
  }

  // What is there at the end; then close().
  void remains(uint64_t address, int64_t size) {
    auto entry = live_.find(address);
    if (entry != live_.end() && entry->second.size == size) {
      live_.erase(entry);
    } else {
      add(kNoEvent, address, size, entry != live_.end());
    }
  }

  std::vector<LooseEnd> close() {
    for (const auto& entry : live_) add_all_of(entry, true);
    return std::move(loose_);
  }

 private:
  struct Entry {
    uint32_t begin = kNoEvent;
    uint32_t request = kNoEvent;
    int64_t size = 0;
  };

  void add(uint32_t event, uint64_t address, int64_t size, bool sure) {
    loose_.push_back(LooseEnd{.event = event, .address = address, .size = size, .sure = sure});
  }
  void add_all_of(const std::pair<const uint64_t, Entry>& entry, bool sure) {
    for (const uint32_t event : {entry.second.begin, entry.second.request}) {
      if (event != kNoEvent) add(event, entry.first, entry.second.size, sure);
    }
  }

  std::map<uint64_t, Entry> live_;
  std::set<uint64_t> seen_;
  std::vector<LooseEnd> loose_;
};

// The same for pages, which are mapped and unmapped in stretches of any length.
class PageLedger {
 public:
  void map(uint32_t event, uint64_t address, int64_t size) {
    const uint64_t end = address + static_cast<uint64_t>(size);
    bool overlaps = false;
    take_out(address, end, [&](uint64_t from, uint64_t to, uint32_t by) {
      overlaps = true;
      add(by, from, to, true);
    });
    if (overlaps) add(event, address, end, true);
    runs_[address] = Run{.end = end, .event = event};
  }

  void unmap(uint32_t event, uint64_t address, int64_t size) {
    const uint64_t end = address + static_cast<uint64_t>(size);
    uint64_t covered = address;
    take_out(address, end, [&](uint64_t from, uint64_t to, uint32_t) {
      if (from > covered) add(event, covered, from, false);
      covered = to;
    });
    if (covered < end) add(event, covered, end, false);
  }

  void remains(uint64_t address, int64_t size) { unmap(kNoEvent, address, size); }

  std::vector<LooseEnd> close() {
    for (const auto& [address, run] : runs_) add(run.event, address, run.end, true);
    return std::move(loose_);
  }

 private:
  struct Run {
    uint64_t end;
    uint32_t event;
  };

  template <class Visit>
  void take_out(uint64_t begin, uint64_t end, Visit visit) {
    auto entry = runs_.upper_bound(begin);
    if (entry != runs_.begin() && std::prev(entry)->second.end > begin) --entry;
    while (entry != runs_.end() && entry->first < end) {
      const auto [from, run] = *entry;
      entry = runs_.erase(entry);
      if (from < begin) runs_[from] = Run{.end = begin, .event = run.event};
      if (run.end > end) runs_[end] = run;
      visit(std::max(from, begin), std::min(run.end, end), run.event);
    }
  }

  void add(uint32_t event, uint64_t begin, uint64_t end, bool sure) {
    loose_.push_back(
        LooseEnd{.event = event, .address = begin, .size = static_cast<int64_t>(end - begin), .sure = sure});
  }

  std::map<uint64_t, Run> runs_;
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
        segments.remains(segment.address, segment.total_size);
      }
      for (uint32_t b = segment.first_block; b < segment.first_block + segment.block_count; ++b) {
        const SnapshotBlock& block = snapshot.blocks[b];
        if (block.state != BlockState::inactive) blocks.remains(block.address, block.requested_size);
      }
    }
    suspect(segments.close());
    suspect_pages(pages.close());
    suspect(blocks.close());
    return std::move(suspects_);
  }

 private:
  void add(uint32_t event, uint64_t address) {
    if (event == kNoEvent || trace_.addr[event] == address || suspects_.size() >= most_) return;
    const Suspect suspect{.event = event, .address = address};
    if (std::find(suspects_.begin(), suspects_.end(), suspect) == suspects_.end()) suspects_.push_back(suspect);
  }

  // Loose ends of one size explain each other; two sure ones before a sure and a possible one, and near ones first.
  void suspect(std::vector<LooseEnd> loose) {
    std::vector<LooseEnd> sure;
    std::copy_if(loose.begin(), loose.end(), std::back_inserter(sure), [](const LooseEnd& end) { return end.sure; });
    if (sure.size() > most_) sure.resize(most_);
    for (const LooseEnd& a : sure) {
      for (const LooseEnd& b : sure) {
        if (a.size == b.size) add(a.event, b.address);
      }
    }
    for (const LooseEnd& a : sure) {
      std::vector<LooseEnd> others;
      std::copy_if(loose.begin(), loose.end(), std::back_inserter(others),
                   [&](const LooseEnd& b) { return !b.sure && a.size == b.size; });
      auto distance = [&a](const LooseEnd& b) { return b.event > a.event ? b.event - a.event : a.event - b.event; };
      std::stable_sort(others.begin(), others.end(),
                       [&](const LooseEnd& x, const LooseEnd& y) { return distance(x) < distance(y); });
      for (const LooseEnd& b : others) {
        add(a.event, b.address);
        add(b.event, a.address);
      }
    }
  }

  // Pages have no size of their own: any stretch may begin, or end, where another is loose.
  void suspect_pages(std::vector<LooseEnd> loose) {
    std::stable_sort(loose.begin(), loose.end(), [](const LooseEnd& a, const LooseEnd& b) {
      return std::tuple(!a.sure, a.address) < std::tuple(!b.sure, b.address);
    });
    if (loose.size() > most_) loose.resize(most_);
    for (const LooseEnd& a : loose) {
      for (const LooseEnd& b : loose) {
        if (a.event == kNoEvent || a.event == b.event || (!a.sure && !b.sure)) continue;
        add(a.event, b.address);
        add(a.event, b.address + static_cast<uint64_t>(b.size - trace_.size[a.event]));
      }
    }
  }

  const Timeline& timeline_;
  const Trace& trace_;
  size_t most_;
  std::vector<Suspect> suspects_;
};

}  // namespace

std::vector<Suspect> find_suspects(const Timeline& timeline, size_t most) {
  if (!timeline.snapshot->complete) return {};
  return Search(timeline, most).run();
}

}  // namespace oomscope
