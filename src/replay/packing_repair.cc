// Ejection search.
//
// The problem: a placement is a few percent above the floor because a few hundred of its items, often of a thousand
// times as many, stand out at a few moments. To place all anew in another order changes everything and fixes one
// moment while it breaks another. We keep what is good: all items below the target height stay, the rest wait in a
// queue, largest first. An item that finds a gap takes the tightest one. One that finds none ejects others: among all
// offsets at which it would touch a neighbour or an end of the space, it takes the one whose occupants weigh least.
// They go into the queue, being usually smaller than the item that came, and so the disorder is handed down to ever
// smaller items until it fits into the gaps that every packing has.
//
//   target 6, waiting: C (3 units, all of the time). At offset 0 it would eject A and D (4 units), at offset 2 only B
//   (2 units). So C goes to [2,5), B waits, and then finds [0,2) free between A and D.
//
//   6 |   BB   |        6 |        |
//   5 |   BB   |        5 |CCCCCCCC|
//   4 |        |        4 |CCCCCCCC|
//   3 |        |   =>   3 |CCCCCCCC|
//   2 |AA    DD|        2 |AA BB DD|
//   1 |AA    DD|        1 |AA BB DD|
//
// Two items that eject each other forever are the known flaw of such a search. Each time an item finds no gap its
// weight grows, so that those which are hard to place stay where they are and others move (the guided ejection search
// of vehicle routing does the same with routes). Equal offers are decided by a generator with a fixed seed.
//
// Cost: one pass over all items to begin with, then for each attempt the item's neighbours in time, sorted. It stops at
// the target or when its work is spent; it proves nothing when it fails.
#include "replay/packing_repair.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

namespace oomscope {
namespace {

constexpr float kHardship = 3;  // added to an item's weight factor, which starts at 1, whenever it finds no gap

struct Neighbour {
  int64_t begin_bytes = 0;
  int64_t end_bytes = 0;
  double weight = 0;
  uint32_t item = 0;
};

bool begins_lower(const Neighbour& a, const Neighbour& b) {
  return a.begin_bytes != b.begin_bytes ? a.begin_bytes < b.begin_bytes : a.item < b.item;
}

bool ends_lower(const Neighbour& a, const Neighbour& b) {
  return a.end_bytes != b.end_bytes ? a.end_bytes < b.end_bytes : a.item < b.item;
}

// xorshift64: small, good enough to break ties.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 | 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

// The cheapest offset among those offered so far; the weight there is what would be ejected.
class CheapestOffset {
 public:
  CheapestOffset(const std::vector<Neighbour>& by_begin, const std::vector<Neighbour>& by_end, int64_t size_bytes,
                 int64_t target_bytes, Generator* generator)
      : by_begin_(by_begin),
        by_end_(by_end),
        size_bytes_(size_bytes),
        target_bytes_(target_bytes),
        generator_(generator) {}

  // Offers must rise; restart() begins a new rising sequence.
  void restart() {
    begun_ = 0;
    ended_ = 0;
    weight_ = 0;
  }

  void offer(int64_t offset_bytes) {
    if (offset_bytes < 0 || offset_bytes > target_bytes_ - size_bytes_) return;
    for (; begun_ < by_begin_.size() && by_begin_[begun_].begin_bytes < offset_bytes + size_bytes_; ++begun_) {
      weight_ += by_begin_[begun_].weight;
    }
    for (; ended_ < by_end_.size() && by_end_[ended_].end_bytes <= offset_bytes; ++ended_) {
      weight_ -= by_end_[ended_].weight;
    }
    if (weight_ < best_weight_ * (1 - kTie)) {
      best_weight_ = weight_;
      best_ = offset_bytes;
      ties_ = 1;
    } else if (weight_ <= best_weight_ * (1 + kTie) && generator_->next() % ++ties_ == 0) {
      best_ = offset_bytes;
    }
  }

  [[nodiscard]] int64_t best() const { return best_; }

 private:
  static constexpr double kTie = 1e-9;  // sums of the same weights may differ by rounding

  const std::vector<Neighbour>& by_begin_;
  const std::vector<Neighbour>& by_end_;
  int64_t size_bytes_;
  int64_t target_bytes_;
  Generator* generator_;
  size_t begun_ = 0;
  size_t ended_ = 0;
  double weight_ = 0;
  double best_weight_ = 1e300;
  int64_t best_ = 0;
  uint64_t ties_ = 0;
};

class Repair {
 public:
  Repair(PackProblem* problem, OverlapIndex* index, const RepairOptions& options)
      : items_(problem->items), index_(*index), options_(options), generator_(options.seed) {
    weights_.resize(items_.size());
    for (uint32_t i = 0; i < items_.size(); ++i) {
      double duration = options.size_alone ? 1 : static_cast<double>(items_[i].end_rank - i);
      weights_[i] = static_cast<float>(std::sqrt(static_cast<double>(items_[i].size_bytes) * duration));
    }
    factors_.assign(items_.size(), 1);
    work_ = static_cast<int64_t>(items_.size());
  }

  RepairResult run() {
    start();
    while (!waiting_.empty()) {
      if (work_ >= options_.work_units) return {false, work_};
      uint32_t item = waiting_.top().item;
      waiting_.pop();
      if (items_[item].size_bytes > options_.target_bytes) return {false, work_};
      collect(item);
      int64_t offset_bytes = tightest_gap(items_[item].size_bytes);
      if (offset_bytes < 0) {
        factors_[item] += kHardship;
        offset_bytes = cheapest_offset(items_[item].size_bytes);
        eject(offset_bytes, offset_bytes + items_[item].size_bytes);
      }
      items_[item].offset_bytes = offset_bytes;
      index_.insert(item);
    }
    return {true, work_};
  }

 private:
  struct Waiting {
    int64_t size_bytes;
    uint32_t item;
    bool operator<(const Waiting& other) const {
      return size_bytes != other.size_bytes ? size_bytes < other.size_bytes : item > other.item;
    }
  };

  void start() {
    index_.clear();
    for (uint32_t i = 0; i < items_.size(); ++i) {
      if (items_[i].offset_bytes + items_[i].size_bytes <= options_.target_bytes) {
        index_.insert(i);
      } else {
        waiting_.push({items_[i].size_bytes, i});
      }
    }
  }

  void collect(uint32_t item) {
    work_ += index_.collect(item, &overlapping_);
    neighbours_.clear();
    for (uint32_t other : overlapping_) {
      const PackItem& placed = items_[other];
      double weight = static_cast<double>(weights_[other]) * static_cast<double>(factors_[other]);
      neighbours_.push_back({placed.offset_bytes, placed.offset_bytes + placed.size_bytes, weight, other});
    }
    std::sort(neighbours_.begin(), neighbours_.end(), begins_lower);
  }

  // The smallest gap among the neighbours that holds size_bytes below the target; -1 if there is none.
  [[nodiscard]] int64_t tightest_gap(int64_t size_bytes) const {
    int64_t best = -1;
    int64_t best_gap_bytes = INT64_MAX;
    int64_t top = 0;
    auto try_gap = [&](int64_t end) {
      int64_t gap_bytes = end - top;
      if (gap_bytes < size_bytes || gap_bytes >= best_gap_bytes) return;
      best_gap_bytes = gap_bytes;
      best = top;
    };
    for (const Neighbour& neighbour : neighbours_) {
      try_gap(neighbour.begin_bytes);
      top = std::max(top, neighbour.end_bytes);
    }
    try_gap(options_.target_bytes);
    return best;
  }

  int64_t cheapest_offset(int64_t size_bytes) {
    by_end_ = neighbours_;
    std::sort(by_end_.begin(), by_end_.end(), ends_lower);
    CheapestOffset cheapest(neighbours_, by_end_, size_bytes, options_.target_bytes, &generator_);
    cheapest.offer(0);
    for (const Neighbour& neighbour : by_end_) cheapest.offer(neighbour.end_bytes);
    cheapest.restart();
    for (const Neighbour& neighbour : neighbours_) cheapest.offer(neighbour.begin_bytes - size_bytes);
    cheapest.offer(options_.target_bytes - size_bytes);
    return cheapest.best();
  }

  void eject(int64_t begin_bytes, int64_t end_bytes) {
    for (const Neighbour& neighbour : neighbours_) {
      if (neighbour.begin_bytes >= end_bytes || neighbour.end_bytes <= begin_bytes) continue;
      index_.erase(neighbour.item);
      waiting_.push({items_[neighbour.item].size_bytes, neighbour.item});
    }
  }

  std::vector<PackItem>& items_;
  OverlapIndex& index_;
  RepairOptions options_;
  Generator generator_;
  std::vector<float> weights_;  // what an item weighs at first
  std::vector<float> factors_;  // grows with each time it found no gap
  std::priority_queue<Waiting> waiting_;
  std::vector<uint32_t> overlapping_;
  std::vector<Neighbour> neighbours_;  // of the item in hand, by begin
  std::vector<Neighbour> by_end_;
  int64_t work_ = 0;
};

}  // namespace

RepairResult repair_placement(PackProblem* problem, OverlapIndex* index, const RepairOptions& options) {
  return Repair(problem, index, options).run();
}

}  // namespace oomscope
