// The engine against SlowAllocator: random requests under every combination of settings, everything compared after
// every step. OOMSCOPE_LONG_TESTS=N runs N times as many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <tuple>

#include "support/allocator_rig.h"
#include "support/slow_allocator.h"

namespace oomscope {
namespace {

constexpr PoolId kPools[] = {{}, {.first = 0, .second = 1}, {.first = 1, .second = 0}};

struct Combination {
  bool expandable;
  int64_t max_split_mib;  // 0: unlimited
  double collection;
  int64_t limit_mib;  // 0: none
  int64_t divisions;
  int64_t capacity_mib;  // 0: boundless
  int streams;
  int pools;
  const char* rules;
  [[nodiscard]] std::string text() const {
    return "expandable " + std::to_string(expandable) + " max_split " + std::to_string(max_split_mib) + " collection " +
           std::to_string(collection) + " limit " + std::to_string(limit_mib) + " divisions " +
           std::to_string(divisions) + " capacity " + std::to_string(capacity_mib) + " streams " +
           std::to_string(streams) + " pools " + std::to_string(pools) + " rules " + rules;
  }
};

std::vector<int64_t> numbers_of(const Stats& stats) {
  std::vector<int64_t> numbers;
  auto add = [&](const Stat& stat) {
    for (int64_t value : {stat.current, stat.peak, stat.allocated(), stat.freed}) numbers.push_back(value);
  };
  for (const StatArray* array :
       {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split, &stats.allocated_bytes,
        &stats.reserved_bytes, &stats.active_bytes, &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (const Stat& stat : {array->all(), array->small(), array->large()}) add(stat);
  }
  add(stats.oversize_allocations.value());
  add(stats.oversize_segments.value());
  for (int64_t value : {stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams, stats.num_device_alloc,
                        stats.num_device_free}) {
    numbers.push_back(value);
  }
  return numbers;
}

using Shown = std::tuple<uint64_t, int64_t, int64_t, int>;  // address, size, requested, state

std::vector<Shown> blocks_of(const CachingAllocator& allocator) {
  std::vector<Shown> blocks;
  for (const Segment* segment : allocator.segments()) {
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      const int state = block->allocated ? 0 : (!block->is_idle() ? 1 : (block->mapped ? 2 : 3));
      blocks.emplace_back(block->address, block->size, block->requested_size, state);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

std::vector<Shown> blocks_of(const SlowAllocator& allocator) {
  std::vector<Shown> blocks;
  for (const SlowAllocator::Piece& piece : allocator.pieces()) {
    blocks.emplace_back(piece.address, piece.size, piece.requested, static_cast<int>(piece.state));
  }
  return blocks;
}

class Duel {
 public:
  Duel(const Combination& combination, uint64_t seed)
      : combination_(combination),
        random_(seed),
        rules_(rules_of(combination)),
        fast_(rules_named(combination.rules), rules_.settings, fast_device_),
        slow_(rules_, slow_device_) {
    fast_.set_memory_limit(rules_.limit);
    std::vector<uint64_t> places;
    for (uint64_t i = 0; i < 400; ++i) places.push_back(FakeDevice::kFirst + i * (uint64_t{1} << 32));
    std::shuffle(places.begin(), places.end(), random_);
    for (FakeDevice* device : {&fast_device_, &slow_device_}) {
      device->addresses.assign(places.begin(), places.end());
      device->total = 256 * kMiB;
      if (combination.capacity_mib != 0) device->capacity = combination.capacity_mib * kMiB;
    }
  }

  // False after the first difference.
  bool run(int steps) {
    for (int step = 0; step < steps; ++step) {
      act();
      compare();
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << combination_.text() << "; step " << step;
        return false;
      }
    }
    return true;
  }

 private:
  struct Live {
    Block* block;
    uint64_t address;
  };

  static SlowRules rules_of(const Combination& c) {
    SlowRules rules;
    const std::string name = c.rules;
    rules.tie = name == "2.12" ? SlowTie::block : (name == "2.13" ? SlowTie::segment : SlowTie::address);
    rules.user_pools_suspend = name != "2.13";
    rules.settings.expandable_segments = c.expandable;
    if (c.max_split_mib != 0) rules.settings.max_split_size_bytes = c.max_split_mib * kMiB;
    rules.settings.garbage_collection_threshold = c.collection;
    rules.settings.roundup_power2_divisions.fill(c.divisions);
    if (c.limit_mib != 0) rules.limit = c.limit_mib * kMiB;
    return rules;
  }

  uint64_t below(uint64_t bound) { return random_() % bound; }

  // Few distinct sizes, so that ties and exact fits are common.
  int64_t pick_size() {
    const int64_t fuzz = below(2) == 0 ? 0 : static_cast<int64_t>(below(3)) * 300 - 300;
    switch (below(5)) {
      case 0: return static_cast<int64_t>(below(6) + 1) * 512 + (fuzz == -300 ? -1 : 0);
      case 1: return static_cast<int64_t>(below(4) + 1) * 256 * 1024 + fuzz;
      case 2: return static_cast<int64_t>(below(9) + 1) * kMiB + fuzz;
      case 3: return static_cast<int64_t>(below(11) + 9) * kMiB + fuzz;
      default: return static_cast<int64_t>(below(4) + 4) * 5 * kMiB + fuzz;
    }
  }

  void act() {
    const uint64_t dice = below(100);
    if (dice < 50 || live_.empty()) return allocate();
    if (dice < 90) return free_one(dice >= 83);
    if (dice < 96) return complete_one();
    if (dice < 99 || combination_.pools == 1) {
      fast_.empty_cache();
      slow_.empty_cache();
    } else {
      release_a_pool();
    }
  }

  // Once released, a pool gets no requests any more.
  void release_a_pool() {
    const size_t which = 1 + below(static_cast<uint64_t>(combination_.pools) - 1);
    if (closed_[which]) return;
    closed_[which] = true;
    fast_.private_pool(kPools[which]);
    fast_.release_pool(kPools[which]);
    slow_.release_pool(kPools[which]);
  }

  void allocate() {
    const int64_t size = pick_size();
    const StreamId stream{below(static_cast<uint64_t>(combination_.streams))};
    size_t which = below(2) == 0 ? 0 : below(static_cast<uint64_t>(combination_.pools));
    if (closed_[which]) which = 0;
    Block* block = fast_.malloc_in_pool(size, stream, kPools[which]);
    const uint64_t address = slow_.malloc(size, stream, kPools[which]);
    ASSERT_EQ(block == nullptr ? 0 : block->address, address) << size << " bytes";
    if (block == nullptr) {
      EXPECT_EQ(fast_.refusal(), Refusal::oom);
      return;
    }
    live_.push_back({block, address});
  }

  void free_one(bool held) {
    const size_t which = below(live_.size());
    const Live live = live_[which];
    live_.erase(live_.begin() + static_cast<ptrdiff_t>(which));
    if (held) {
      fast_.free_held(live.block);
      slow_.free_held(live.address);
      held_.push_back(live);
    } else {
      fast_.free(live.block);
      slow_.free(live.address);
    }
  }

  void complete_one() {
    std::erase_if(held_, [](const Live& live) { return !live.block->held || live.block->address != live.address; });
    if (held_.empty()) return;
    const size_t which = below(held_.size());
    fast_.complete(held_[which].block);
    slow_.complete(held_[which].address);
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(which));
  }

  void compare() {
    ASSERT_EQ(fast_device_.calls, slow_device_.calls);
    ASSERT_EQ(fast_device_.range_calls, slow_device_.range_calls);
    ASSERT_EQ(numbers_of(fast_.stats()), slow_.numbers());
    ASSERT_EQ(blocks_of(fast_), blocks_of(slow_));
    ASSERT_EQ(fast_.check_invariants(), "");
    for (FakeDevice* device : {&fast_device_, &slow_device_}) {
      device->calls.clear();
      device->range_calls.clear();
    }
    // A release of everything completes what was held.
    std::erase_if(held_, [](const Live& live) { return !live.block->held; });
  }

  Combination combination_;
  std::mt19937_64 random_;
  SlowRules rules_;
  FakeDevice fast_device_;
  FakeDevice slow_device_;
  CachingAllocator fast_;
  SlowAllocator slow_;
  std::vector<Live> live_;
  std::vector<Live> held_;
  bool closed_[3] = {};
};

int repetitions() {
  const char* text = std::getenv("OOMSCOPE_LONG_TESTS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

void duel_all(bool expandable, const char* rules) {
  uint64_t seed = 1;
  for (int64_t max_split : {0, 20, 30}) {
    for (double collection : {0.0, 0.3, 0.7}) {
      for (int64_t limit : {0, 90, 150}) {
        for (int64_t divisions : {0, 4}) {
          for (int64_t capacity : {0, 120}) {
            for (auto [streams, pools] : {std::pair(1, 1), std::pair(2, 1), std::pair(2, 3)}) {
              for (int i = 0; i < repetitions(); ++i) {
                const Combination combination{expandable, max_split, collection, limit, divisions,
                                              capacity,   streams,   pools,      rules};
                if (!Duel(combination, seed++).run(300)) return;
              }
            }
          }
        }
      }
    }
  }
}

TEST(SlowAllocator, AgreesOnOrdinarySegments) { duel_all(false, "2.11"); }
TEST(SlowAllocator, AgreesOnExpandableSegments) { duel_all(true, "2.11"); }
TEST(SlowAllocator, AgreesOnOrdinarySegmentsOfTorch212) { duel_all(false, "2.12"); }
TEST(SlowAllocator, AgreesOnExpandableSegmentsOfTorch212) { duel_all(true, "2.12"); }
TEST(SlowAllocator, AgreesOnOrdinarySegmentsOfTorch213) { duel_all(false, "2.13"); }
TEST(SlowAllocator, AgreesOnExpandableSegmentsOfTorch213) { duel_all(true, "2.13"); }

}  // namespace
}  // namespace oomscope
