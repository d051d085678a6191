// SlowAllocator: the caching allocator once more, as naively as possible, to check the engine with.
//
// Written from the description of PyTorch's allocator, not from src/caching, and sharing no code with it. Blocks are
// one vector in address order; every question is a scan or a sort; every rule is written out where it applies. A free
// list, a split, a merge cannot go wrong in the same way in both.
//
// It covers rounding, pools, streams, private pools, best fit with the tie-breaks of torch 2.11, 2.12 and 2.13,
// max_split_size, garbage collection, limits, expandable segments, release of everything, frees that wait, and every
// statistic. Left out: scopes, events and settings that change at run time, which hand-written cases cover.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_device.h"
#include "types/allocator_settings.h"
#include "types/ids.h"

namespace oomscope {

struct SlowStat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;
  void change(int64_t amount) {
    current += amount;
    peak = std::max(peak, current);
    (amount > 0 ? allocated : freed) += amount > 0 ? amount : -amount;
  }
};

enum class SlowTie { address, block, segment };

struct SlowRules {
  SlowTie tie = SlowTie::address;
  bool user_pools_suspend = true;  // up to 2.12
  AllocatorSettings settings;
  std::optional<int64_t> limit;
};

class SlowAllocator {
 public:
  static constexpr int64_t kMib = 1048576;
  enum class State { allocated, pending, free, unmapped };
  struct Piece {
    uint64_t address;
    int64_t size;
    int64_t requested;
    State state;
    int segment;
    int64_t born;      // searches of its pool when it entered the free set
    int64_t number;    // of the object, for SlowTie::block
    int64_t freed_at;  // order of frees that wait
  };
  struct Area {
    uint64_t address;
    int64_t size;
    StreamId stream;
    PoolId pool;
    bool small;
    bool expandable;
  };

  SlowAllocator(const SlowRules& rules, FakeDevice& device) : rules_(rules), set_(rules_.settings), device_(device) {}

  // The address, or 0 if there is no room.
  uint64_t malloc(int64_t requested, StreamId stream, PoolId pool) {
    Ask ask{.requested = requested, .size = round(requested), .stream = stream, .pool = pool, .small = false};
    ask.small = ask.size <= kMib;
    if (ask.small) {
      ask.segment_size = 2 * kMib;
    } else if (ask.size < 10 * kMib) {
      ask.segment_size = set_.large_segment_size_bytes;
    } else {
      ask.segment_size = (ask.size + 2 * kMib - 1) / (2 * kMib) * (2 * kMib);
    }
    uint64_t place = search(ask);
    if (place == 0) {
      if (collects()) collect();
      place = obtain(ask);
    }
    if (place == 0 && release_some(ask)) place = obtain(ask);
    const bool suspended = !pool.is_default() && (rules_.user_pools_suspend || pool.first != 0);
    if (place == 0 && !suspended) {
      release_all();
      retries_ += 1;
      place = obtain(ask);
    }
    if (place == 0) {
      ooms_ += 1;
      return 0;
    }
    hand_out(ask, index_at(place));
    return place;
  }

  void free(uint64_t address) {
    request_free(index_at(address));
    take_back(index_at(address));
  }
  void free_held(uint64_t address) {
    const size_t i = index_at(address);
    request_free(i);
    pieces_[i].state = State::pending;
    pieces_[i].freed_at = next_free_++;
  }
  void complete(uint64_t address) {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].address == address && pieces_[i].state == State::pending) return take_back(i);
    }
  }
  void empty_cache() { release_all(); }
  void release_pool(PoolId pool) { released_.push_back(pool); }

  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }

  // In the order of torch's statistics: nine arrays of (all, small, large), two single ones, then the counters.
  [[nodiscard]] std::vector<int64_t> numbers() const {
    std::vector<int64_t> numbers;
    auto add = [&](const SlowStat& stat) {
      for (int64_t value : {stat.current, stat.peak, stat.allocated, stat.freed}) numbers.push_back(value);
    };
    for (const auto* array : {&allocation_, &segment_, &active_, &inactive_split_, &allocated_bytes_, &reserved_bytes_,
                              &active_bytes_, &inactive_split_bytes_, &requested_bytes_}) {
      for (const SlowStat& stat : *array) add(stat);
    }
    add(oversize_allocations_);
    add(oversize_segments_);
    for (int64_t value : {retries_, ooms_, syncs_, device_allocs_, device_frees_}) numbers.push_back(value);
    return numbers;
  }

 private:
  using Trio = std::array<SlowStat, 3>;  // all, small, large
  struct Ask {
    int64_t requested;
    int64_t size;
    StreamId stream;
    PoolId pool;
    bool small;
    int64_t segment_size = 0;
  };

  static void count(Trio& trio, bool small, int64_t amount) {
    trio[0].change(amount);
    trio[small ? 1 : 2].change(amount);
  }

  [[nodiscard]] int64_t round(int64_t r) const {
    if (r < 512) return 512;
    int interval = 0;
    for (int64_t mib = r / kMib; mib >= 2 && interval < 15; mib /= 2) ++interval;
    const int64_t divisions = set_.roundup_power2_divisions[static_cast<size_t>(interval)];
    int64_t step = 512;
    if (divisions > 1 && r > 512 * divisions) {
      int64_t power = 512;
      while (power * 2 <= r) power *= 2;
      if (power == r) return r;
      step = power / divisions;
    }
    while (r % step != 0) r += step - r % step;
    return r;
  }

  [[nodiscard]] size_t index_at(uint64_t address) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].address == address) return i;
    }
    ADD_FAILURE() << "nothing at " << address;
    return 0;
  }
  [[nodiscard]] const Area& area(const Piece& piece) const { return areas_.at(piece.segment); }
  [[nodiscard]] bool has_prev(size_t i) const { return i > 0 && pieces_[i - 1].segment == pieces_[i].segment; }
  [[nodiscard]] bool has_next(size_t i) const {
    return i + 1 < pieces_.size() && pieces_[i + 1].segment == pieces_[i].segment;
  }
  [[nodiscard]] bool alone(size_t i) const { return !has_prev(i) && !has_next(i); }
  [[nodiscard]] int64_t reserved() const {
    int64_t sum = 0;
    for (const Piece& piece : pieces_) sum += piece.state == State::unmapped ? 0 : piece.size;
    return sum;
  }

  // Addresses of free pieces of one pool, in the order of PyTorch's set.
  [[nodiscard]] std::vector<uint64_t> free_set(PoolId pool, bool small, std::optional<StreamId> stream) const {
    std::vector<std::pair<std::array<uint64_t, 4>, uint64_t>> keyed;
    for (const Piece& piece : pieces_) {
      const Area& where = area(piece);
      if (piece.state != State::free || where.pool != pool || where.small != small) continue;
      if (stream && where.stream != *stream) continue;
      uint64_t tie = 0;
      if (rules_.tie == SlowTie::block) tie = static_cast<uint64_t>(piece.number);
      if (rules_.tie == SlowTie::segment) tie = static_cast<uint64_t>(piece.segment);
      keyed.push_back({{static_cast<uint64_t>(where.stream), static_cast<uint64_t>(piece.size), tie, piece.address},
                       piece.address});
    }
    std::sort(keyed.begin(), keyed.end());
    std::vector<uint64_t> addresses;
    for (const auto& [key, address] : keyed) addresses.push_back(address);
    return addresses;
  }

  // --- searching ---------------------------------------------------------------------------------------------------

  uint64_t search(const Ask& ask) {
    if (collects()) searches_[{ask.pool, ask.small}] += 1;
    std::vector<uint64_t> fitting;
    for (uint64_t address : free_set(ask.pool, ask.small, ask.stream)) {
      if (pieces_[index_at(address)].size >= ask.size) fitting.push_back(address);
    }
    if (fitting.empty()) return 0;
    size_t chosen = 0;
    if (set_.expandable_segments) {
      while (chosen + 1 < fitting.size() && can_become(fitting[chosen + 1]) < can_become(fitting[chosen])) ++chosen;
    }
    const int64_t size = pieces_[index_at(fitting[chosen])].size;
    if (ask.size < set_.max_split_size_bytes && size >= set_.max_split_size_bytes) return 0;
    if (ask.size >= set_.max_split_size_bytes && size >= ask.size + set_.max_non_split_rounding_bytes) return 0;
    return fitting[chosen];
  }

  [[nodiscard]] int64_t can_become(uint64_t address) const {
    const size_t i = index_at(address);
    const bool grows = has_next(i) && pieces_[i + 1].state == State::unmapped;
    return pieces_[i].size + (grows ? pieces_[i + 1].size : 0);
  }

  // --- the driver --------------------------------------------------------------------------------------------------

  uint64_t obtain(const Ask& ask) {
    if (rules_.limit && reserved() + ask.segment_size > *rules_.limit) return 0;
    const uint64_t place = set_.expandable_segments ? grow(ask) : obtain_segment(ask);
    if (place != 0) driver_count_[ask.pool] += 1;
    return place;
  }

  uint64_t obtain_segment(const Ask& ask) {
    const uint64_t address = device_.allocate(ask.segment_size, ask.stream);
    if (address == 0) return 0;
    add_area(address, ask.segment_size, ask, false, State::free);
    count(segment_, ask.small, 1);
    count(reserved_bytes_, ask.small, ask.segment_size);
    if (ask.segment_size >= set_.max_split_size_bytes) oversize_segments_.change(1);
    device_allocs_ += 1;
    return address;
  }

  void add_area(uint64_t address, int64_t size, const Ask& ask, bool expandable, State state) {
    const int id = next_area_++;
    areas_[id] = Area{address, size, ask.stream, ask.pool, ask.small, expandable};
    insert(Piece{address, size, 0, state, id, searches_[{ask.pool, ask.small}], next_number_++, 0});
  }
  void insert(const Piece& piece) {
    size_t i = 0;
    while (i < pieces_.size() && pieces_[i].address < piece.address) ++i;
    pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(i), piece);
  }
  void erase(size_t i) { pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(i)); }

  uint64_t grow(const Ask& ask) {
    uint64_t start = place_to_grow(ask);
    if (start == 0) {
      const int64_t page = ask.small ? 2 * kMib : set_.large_segment_size_bytes;
      const int64_t wanted = device_.total_bytes() + device_.total_bytes() / 8;
      const int64_t size = (wanted + page - 1) / page * page;
      if (size < ask.size) return 0;
      start = device_.reserve(size, page);
      add_area(start, size, ask, true, State::unmapped);
    }
    size_t i = index_at(start);
    if (pieces_[i].state == State::unmapped && !map(i, std::min(pieces_[i].size, ask.size))) return 0;
    while (pieces_[i = index_at(start)].size < ask.size) {
      if (!map(i + 1, std::min(ask.size - pieces_[i].size, pieces_[i + 1].size))) return 0;
    }
    return start;
  }

  [[nodiscard]] uint64_t place_to_grow(const Ask& ask) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Area& where = area(pieces_[i]);
      if (pieces_[i].state != State::unmapped || where.pool != ask.pool || where.small != ask.small) continue;
      if (where.stream != ask.stream) continue;
      size_t start = i;
      if (has_prev(i) && pieces_[i - 1].state == State::free) start = i - 1;
      int64_t room = 0;
      for (size_t k = start; k < pieces_.size() && pieces_[k].segment == pieces_[i].segment; ++k) {
        if (pieces_[k].state != State::free && pieces_[k].state != State::unmapped) break;
        room += pieces_[k].size;
      }
      if (room >= ask.size) return pieces_[start].address;
    }
    return 0;
  }

  bool map(size_t i, int64_t wanted) {
    const Area where = area(pieces_[i]);
    const int64_t page = where.small ? 2 * kMib : set_.large_segment_size_bytes;
    const int64_t size = (wanted + page - 1) / page * page;
    if (!device_.map(pieces_[i].address, size, page)) return false;
    if (size < pieces_[i].size) {
      Piece rest = pieces_[i];
      rest.address += static_cast<uint64_t>(size);
      rest.size -= size;
      rest.requested = 0;
      rest.number = next_number_++;
      pieces_[i].size = size;
      insert(rest);
    }
    pieces_[i].state = State::free;
    pieces_[i].born = searches_[{where.pool, where.small}];
    merge(i);
    count(reserved_bytes_, where.small, size);
    device_allocs_ += 1;
    return true;
  }

  // The piece at i absorbs equal neighbours and stays the object that it is. Returns sizes of what it absorbed.
  std::vector<int64_t> merge(size_t i) {
    std::vector<int64_t> absorbed;
    if (has_prev(i) && pieces_[i - 1].state == pieces_[i].state) {
      absorbed.push_back(pieces_[i - 1].size);
      pieces_[i].address = pieces_[i - 1].address;
      pieces_[i].size += pieces_[i - 1].size;
      erase(i - 1);
      --i;
    }
    if (has_next(i) && pieces_[i + 1].state == pieces_[i].state) {
      absorbed.push_back(pieces_[i + 1].size);
      pieces_[i].size += pieces_[i + 1].size;
      erase(i + 1);
    }
    return absorbed;
  }

  // --- handing out and taking back ---------------------------------------------------------------------------------

  void hand_out(const Ask& ask, size_t i) {
    const bool neighbours = !alone(i);
    const bool expandable = area(pieces_[i]).expandable;
    const int64_t left = pieces_[i].size - ask.size;
    const bool fine_split = ask.small || set_.expandable_segments;
    const bool split = fine_split ? left >= 512 : ask.size < set_.max_split_size_bytes && left > kMib;
    if (split) {
      Piece rest = pieces_[i];  // the old object
      rest.address += static_cast<uint64_t>(ask.size);
      rest.size = left;
      rest.born = searches_[{ask.pool, ask.small}];
      pieces_[i].size = ask.size;
      pieces_[i].number = next_number_++;
      insert(rest);
    }
    if (!expandable && !neighbours && split) {
      count(inactive_split_, ask.small, 1);
      count(inactive_split_bytes_, ask.small, left);
    }
    if (!expandable && neighbours) {
      count(inactive_split_bytes_, ask.small, -pieces_[i].size);
      if (!split) count(inactive_split_, ask.small, -1);
    }
    pieces_[i].state = State::allocated;
    pieces_[i].requested = ask.requested;
    count(allocation_, ask.small, 1);
    count(allocated_bytes_, ask.small, pieces_[i].size);
    count(active_, ask.small, 1);
    count(active_bytes_, ask.small, pieces_[i].size);
    count(requested_bytes_, ask.small, ask.requested);
    if (pieces_[i].size >= set_.max_split_size_bytes) oversize_allocations_.change(1);
  }

  void request_free(size_t i) {
    const bool small = area(pieces_[i]).small;
    count(allocation_, small, -1);
    count(allocated_bytes_, small, -pieces_[i].size);
    if (pieces_[i].size >= set_.max_split_size_bytes) oversize_allocations_.change(-1);
  }

  void take_back(size_t i) {
    const Area where = area(pieces_[i]);
    const Piece before = pieces_[i];
    pieces_[i].state = State::free;
    pieces_[i].born = searches_[{where.pool, where.small}];
    const std::vector<int64_t> absorbed = merge(i);
    size_t now = 0;
    while (pieces_[now].address + static_cast<uint64_t>(pieces_[now].size) <= before.address) ++now;
    int64_t blocks = 0;
    int64_t bytes = 0;
    for (int64_t size : absorbed) {
      blocks -= 1;
      bytes -= size;
    }
    if (!alone(now)) {
      blocks += 1;
      bytes += pieces_[now].size;
    }
    if (!where.expandable && blocks != 0) count(inactive_split_, where.small, blocks);
    if (!where.expandable && bytes != 0) count(inactive_split_bytes_, where.small, bytes);
    count(active_, where.small, -1);
    count(active_bytes_, where.small, -before.size);
    count(requested_bytes_, where.small, -before.requested);
  }

  // --- reclaiming --------------------------------------------------------------------------------------------------

  [[nodiscard]] bool collects() const {
    return rules_.limit && set_.garbage_collection_threshold > 0 && *rules_.limit < device_.total_bytes();
  }

  void collect() {
    const int64_t threshold =
        static_cast<int64_t>(set_.garbage_collection_threshold * static_cast<double>(*rules_.limit));
    const int64_t target = reserved() - threshold;
    if (target <= 0) return;
    const int64_t now = searches_[{PoolId{}, false}];
    double ages = 0;
    int64_t blocks = 0;
    for (uint64_t address : free_set({}, false, std::nullopt)) {
      if (!alone(index_at(address))) continue;
      ages += static_cast<double>(now - pieces_[index_at(address)].born);
      blocks += 1;
    }
    int64_t reclaimed = 0;
    for (bool freed = true; reclaimed < target && freed && blocks > 0;) {
      freed = false;
      const double mean = ages / static_cast<double>(blocks);
      for (uint64_t address : free_set({}, false, std::nullopt)) {
        const size_t i = index_at(address);
        const double age = static_cast<double>(now - pieces_[i].born);
        if (!alone(i) || area(pieces_[i]).expandable || age < mean) continue;
        freed = true;
        reclaimed += pieces_[i].size;
        ages -= age;
        blocks -= 1;
        release_segment(i);
      }
    }
  }

  bool release_some(const Ask& ask) {
    if (set_.max_split_size_bytes == kUnlimitedBytes) return false;
    const int64_t wanted = std::max(ask.size, set_.max_split_size_bytes);
    std::vector<uint64_t> set = free_set(ask.pool, ask.small, ask.stream);
    for (uint64_t address : set) {
      const size_t i = index_at(address);
      if (pieces_[i].size < wanted) continue;
      if (area(pieces_[i]).expandable) break;
      release_segment(i);
      return true;
    }
    int64_t freed = 0;
    std::reverse(set.begin(), set.end());
    for (uint64_t address : set) {
      const size_t i = index_at(address);
      if (freed >= wanted || pieces_[i].size < set_.max_split_size_bytes) break;
      if (area(pieces_[i]).expandable) continue;
      freed += pieces_[i].size;
      release_segment(i);
    }
    return freed >= wanted;
  }

  void release_all() {
    syncs_ += 1;
    std::vector<std::pair<int64_t, uint64_t>> waiting;
    for (const Piece& piece : pieces_) {
      if (piece.state == State::pending) waiting.emplace_back(piece.freed_at, piece.address);
    }
    std::sort(waiting.begin(), waiting.end());
    for (const auto& [number, address] : waiting) take_back(index_at(address));
    release_set({}, false);
    release_set({}, true);
    std::sort(released_.begin(), released_.end());
    for (PoolId pool : released_) {
      release_set(pool, true);
      release_set(pool, false);
    }
  }

  void release_set(PoolId pool, bool small) {
    std::vector<uint64_t> expandable;
    for (uint64_t address : free_set(pool, small, std::nullopt)) {
      const size_t i = index_at(address);
      if (area(pieces_[i]).expandable) {
        expandable.push_back(address);
      } else if (alone(i)) {
        release_segment(i);
      }
    }
    for (uint64_t address : expandable) unmap(index_at(address));
  }

  void release_segment(size_t i) {
    const Area where = area(pieces_[i]);
    device_.release(where.address, where.size);
    device_frees_ += 1;
    driver_count_[where.pool] -= 1;
    count(segment_, where.small, -1);
    count(reserved_bytes_, where.small, -where.size);
    if (where.size >= set_.max_split_size_bytes) oversize_segments_.change(-1);
    erase(i);
  }

  void unmap(size_t i) {
    const Area where = area(pieces_[i]);
    const uint64_t page = static_cast<uint64_t>(where.small ? 2 * kMib : set_.large_segment_size_bytes);
    const Piece old = pieces_[i];
    const uint64_t old_end = old.address + static_cast<uint64_t>(old.size);
    uint64_t begin = where.address;
    while (begin < old.address) begin += page;
    uint64_t end = begin;
    while (end + page <= old_end) end += page;
    if (begin == end) return;
    device_.unmap(begin, static_cast<int64_t>(end - begin));
    Piece part = old;
    part.requested = 0;
    part.born = searches_[{where.pool, where.small}];
    erase(i);
    if (begin > old.address) {
      part.size = static_cast<int64_t>(begin - old.address);
      part.number = next_number_++;
      insert(part);
    }
    if (old_end > end) {
      part.address = end;
      part.size = static_cast<int64_t>(old_end - end);
      part.number = next_number_++;
      insert(part);
    }
    Piece middle = old;
    middle.address = begin;
    middle.size = static_cast<int64_t>(end - begin);
    middle.state = State::unmapped;
    insert(middle);
    merge(index_at(begin));
    count(reserved_bytes_, where.small, -middle.size);
    device_frees_ += 1;
    driver_count_[where.pool] -= 1;
    for (size_t k = 0; k < pieces_.size(); ++k) {
      if (pieces_[k].segment != old.segment || !alone(k) || pieces_[k].state != State::unmapped) continue;
      device_.release_range(where.address, where.size);
      erase(k);
      break;
    }
  }

  SlowRules rules_;
  const AllocatorSettings& set_;
  FakeDevice& device_;
  std::vector<Piece> pieces_;  // in address order
  std::map<int, Area> areas_;
  std::map<std::pair<PoolId, bool>, int64_t> searches_;
  std::map<PoolId, int64_t> driver_count_;
  std::vector<PoolId> released_;
  int next_area_ = 0;
  int64_t next_number_ = 0;
  int64_t next_free_ = 0;
  Trio allocation_, segment_, active_, inactive_split_, allocated_bytes_, reserved_bytes_, active_bytes_,
      inactive_split_bytes_, requested_bytes_;
  SlowStat oversize_allocations_, oversize_segments_;
  int64_t retries_ = 0, ooms_ = 0, syncs_ = 0, device_allocs_ = 0, device_frees_ = 0;
};

}  // namespace oomscope
