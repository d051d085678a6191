// Two ways to get a complete placement, each blind in its own way.
//
// In time order an item lands in the smallest gap that holds it now. It costs n log n and repeats well: when step after
// step asks for the same sizes, the same gaps return. It does not know what comes, so a large late item finds only
// pieces.
//
// Greedily by size, large items choose first and small ones fill what is left, whenever they come. It looks at all
// pairs that are live together, so it is for problems where those can be afforded.
//
//   A: 2 units in [0,2)     in time order            by size
//   B: 1 unit  in [0,4)     6 |    CCCC              4 |BBBBBBBB    height 4, which is the floor
//   C: 3 units in [2,4)     5 |    CCCC              3 |    CCCC
//                           4 |    CCCC              2 |AAAACCCC
//                           3 |BBBBBBBB              1 |AAAACCCC
//                           2 |AAAA
//                           1 |AAAA
//
// Greedy placement can also be worse than time order: see docs/packing.md for both on real recordings.
#include "replay/packing_start.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace oomscope {
namespace {

// The free ranges of one address space, by offset and by size.
class FreeRanges {
 public:
  FreeRanges() { add(0, kMaxPackingBytes); }

  // The lowest of the smallest ranges that hold size_bytes; -1 if there is none.
  int64_t take_best_fit(int64_t size_bytes) {
    auto best = by_size_.lower_bound({size_bytes, 0});
    if (best == by_size_.end()) return -1;
    auto [range_bytes, offset_bytes] = *best;
    by_size_.erase(best);
    by_offset_.erase(offset_bytes);
    if (range_bytes > size_bytes) add(offset_bytes + size_bytes, range_bytes - size_bytes);
    return offset_bytes;
  }

  void give_back(int64_t offset_bytes, int64_t size_bytes) {
    auto after = by_offset_.lower_bound(offset_bytes);
    if (after != by_offset_.end() && after->first == offset_bytes + size_bytes) {
      size_bytes += after->second;
      after = remove(after);
    }
    if (after != by_offset_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == offset_bytes) {
        offset_bytes = before->first;
        size_bytes += before->second;
        remove(before);
      }
    }
    add(offset_bytes, size_bytes);
  }

 private:
  using ByOffset = std::map<int64_t, int64_t>;
  void add(int64_t offset_bytes, int64_t size_bytes) {
    by_offset_.emplace(offset_bytes, size_bytes);
    by_size_.emplace(size_bytes, offset_bytes);
  }
  ByOffset::iterator remove(ByOffset::iterator range) {
    by_size_.erase({range->second, range->first});
    return by_offset_.erase(range);
  }

  ByOffset by_offset_;                             // offset -> size
  std::set<std::pair<int64_t, int64_t>> by_size_;  // the same as (size, offset)
};

// Items by end_rank, by counting.
std::vector<uint32_t> order_by_end(const PackProblem& problem) {
  std::vector<uint32_t> first(problem.items.size() + 2, 0);
  for (const PackItem& item : problem.items) ++first[item.end_rank + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<uint32_t> order(problem.items.size());
  for (size_t i = 0; i < problem.items.size(); ++i) {
    order[first[problem.items[i].end_rank]++] = static_cast<uint32_t>(i);
  }
  return order;
}

double order_key(const PackProblem& problem, uint32_t i, GreedyOrder order) {
  double size = static_cast<double>(problem.items[i].size_bytes);
  double duration = static_cast<double>(problem.items[i].end_rank - i);
  switch (order) {
    case GreedyOrder::size: return size;
    case GreedyOrder::area: return size * duration;
    case GreedyOrder::duration: return duration;
  }
  return size;
}

std::vector<uint32_t> greedy_order(const PackProblem& problem, GreedyOrder order) {
  struct Entry {
    double key;
    uint32_t duration;
    uint32_t item;
  };
  std::vector<Entry> entries(problem.items.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i] = {order_key(problem, i, order), problem.items[i].end_rank - i, i};
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key > b.key;
    if (a.duration != b.duration) return a.duration > b.duration;
    return a.item < b.item;
  });
  std::vector<uint32_t> result(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) result[i] = entries[i].item;
  return result;
}

// The lowest offset at which size_bytes fit between the ranges, which are sorted here.
int64_t lowest_gap(int64_t size_bytes, std::vector<std::pair<int64_t, int64_t>>* ranges) {
  std::sort(ranges->begin(), ranges->end());
  int64_t offset_bytes = 0;
  for (const auto& [begin, end] : *ranges) {
    if (begin - offset_bytes >= size_bytes) break;
    offset_bytes = std::max(offset_bytes, end);
  }
  return offset_bytes;
}

}  // namespace

int64_t place_in_time_order(PackProblem* problem) {
  std::vector<PackItem>& items = problem->items;
  std::vector<uint32_t> by_end = order_by_end(*problem);
  FreeRanges free_ranges;
  size_t ended = 0;
  int64_t height_bytes = 0;
  for (uint32_t i = 0; i < items.size(); ++i) {
    for (; items[by_end[ended]].end_rank <= i; ++ended) {
      const PackItem& item = items[by_end[ended]];
      free_ranges.give_back(item.offset_bytes, item.size_bytes);
    }
    items[i].offset_bytes = free_ranges.take_best_fit(items[i].size_bytes);
    if (items[i].offset_bytes < 0) return -1;
    height_bytes = std::max(height_bytes, items[i].offset_bytes + items[i].size_bytes);
  }
  return height_bytes;
}

int64_t place_greedily(PackProblem* problem, GreedyOrder order, OverlapIndex* index, int64_t* work_units) {
  std::vector<PackItem>& items = problem->items;
  index->clear();
  std::vector<uint32_t> overlapping;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  int64_t height_bytes = 0;
  for (uint32_t i : greedy_order(*problem, order)) {
    if (*work_units <= 0) return -1;
    *work_units -= index->collect(i, &overlapping);
    ranges.clear();
    for (uint32_t other : overlapping) {
      ranges.emplace_back(items[other].offset_bytes, items[other].offset_bytes + items[other].size_bytes);
    }
    items[i].offset_bytes = lowest_gap(items[i].size_bytes, &ranges);
    if (items[i].offset_bytes > kMaxPackingBytes - items[i].size_bytes) return -1;
    height_bytes = std::max(height_bytes, items[i].offset_bytes + items[i].size_bytes);
    index->insert(i);
  }
  return height_bytes;
}

int64_t greedy_work_estimate(const PackProblem& problem) {
  // Item i overlaps end_rank - i - 1 later items; each pair is looked at once, and about as many in vain.
  int64_t pairs = 0;
  for (uint32_t i = 0; i < problem.items.size(); ++i) pairs += problem.items[i].end_rank - i;
  return pairs;
}

}  // namespace oomscope
