#include "replay/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "replay/packing_check.h"

namespace oomscope {
namespace {

// The packing, or a failed test: every packing here is checked and at or above the floor.
Packing checked(const std::vector<Lifetime>& lifetimes, int64_t work_units = kQuickPackingWork) {
  const Result<Packing> packing = pack_lifetimes(lifetimes, {.work_units = work_units});
  if (!packing) {
    ADD_FAILURE() << packing.error().what;
    return {};
  }
  const Result<Done> valid = check_packing(lifetimes, *packing);
  EXPECT_TRUE(valid) << valid.error().what;
  const Result<Floor> floor = floor_bytes(lifetimes);
  EXPECT_TRUE(floor);
  EXPECT_EQ(packing->floor_bytes, floor->bytes);
  EXPECT_GE(packing->height_bytes, floor->bytes);
  return *packing;
}

std::vector<Lifetime> random_lifetimes(uint32_t seed, uint32_t count, uint32_t times, int64_t max_size_bytes) {
  std::mt19937 random(seed);
  std::vector<Lifetime> lifetimes(count);
  for (Lifetime& lifetime : lifetimes) {
    lifetime.begin = static_cast<uint32_t>(random() % times);
    lifetime.end = lifetime.begin + static_cast<uint32_t>(random() % (times - lifetime.begin + 1));
    lifetime.size_bytes = static_cast<int64_t>(random() % static_cast<uint64_t>(max_size_bytes + 1));
  }
  return lifetimes;
}

// Training steps: parameters for good, activations like a stack, small short temporaries.
std::vector<Lifetime> training_lifetimes(uint32_t steps, uint32_t layers) {
  std::vector<Lifetime> lifetimes;
  const uint32_t end = 2 + steps * 4 * layers;
  for (uint32_t i = 0; i < layers; ++i) lifetimes.push_back({512 * 1000, 0, end, 0});
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t start = 1 + step * 4 * layers;
    for (uint32_t i = 0; i < layers; ++i) {
      const uint32_t forward = start + 2 * i;
      lifetimes.push_back({512 * (400 + 100 * (i % 3)), forward, start + 4 * layers - 2 * i, 0});
      lifetimes.push_back({512 * 7, forward, forward + 1, 0});
      lifetimes.push_back({512 * 300, start + 4 * layers - 2 * i - 1, start + 4 * layers - 2 * i + 1, 0});
    }
  }
  return lifetimes;
}

// The least height of any packing. In some optimal packing every item lies at 0 or on top of another (push all down),
// so placing the items in every order at the lowest free place finds it.
int64_t optimal_height(const std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets(lifetimes.size(), 0);
    int64_t height = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Lifetime& mine = lifetimes[order[k]];
      if (mine.begin == mine.end) continue;
      int64_t offset = 0;
      for (size_t tries = 0; tries <= k; ++tries) {
        for (size_t j = 0; j < k; ++j) {
          const Lifetime& other = lifetimes[order[j]];
          if (other.begin >= mine.end || mine.begin >= other.end) continue;
          const int64_t other_offset = offsets[order[j]];
          if (other_offset < offset + mine.size_bytes && offset < other_offset + other.size_bytes) {
            offset = other_offset + other.size_bytes;
          }
        }
      }
      offsets[order[k]] = offset;
      height = std::max(height, offset + mine.size_bytes);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(PackLifetimes, NothingHasHeightZero) { EXPECT_EQ(checked({}).height_bytes, 0); }

TEST(PackLifetimes, OneLifetimeLiesAtZero) {
  const Packing packing = checked({{512, 3, 9, 0}});
  EXPECT_EQ(packing.height_bytes, 512);
  EXPECT_EQ(packing.offsets_bytes, std::vector<int64_t>{0});
}

TEST(PackLifetimes, EmptyLifetimesGetOffsetZero) {
  const Packing packing = checked({{512, 0, 2, 0}, {0, 0, 2, 0}, {512, 1, 1, 0}});
  EXPECT_EQ(packing.height_bytes, 512);
  EXPECT_EQ(packing.offsets_bytes, (std::vector<int64_t>{0, 0, 0}));
}

TEST(PackLifetimes, KnowsWhatComesLater) {
  // Best fit in time order needs 6: the example of packing_start.cc.
  EXPECT_EQ(checked({{2, 0, 2, 0}, {1, 0, 4, 0}, {3, 2, 4, 0}}).height_bytes, 4);
}

TEST(PackLifetimes, AllAtTheSameTimeAreStacked) {
  const std::vector<Lifetime> lifetimes(5000, {512, 7, 8, 0});
  EXPECT_EQ(checked(lifetimes).height_bytes, 5000 * 512);
}

TEST(PackLifetimes, NestedLifetimesReachTheFloor) {
  std::vector<Lifetime> lifetimes;
  for (uint32_t i = 0; i < 2000; ++i) lifetimes.push_back({512 * (1 + i % 7), i, 4000 - i, 0});
  const Packing packing = checked(lifetimes);
  EXPECT_EQ(packing.height_bytes, packing.floor_bytes);
}

TEST(PackLifetimes, AStaircaseReachesTheFloor) {
  std::vector<Lifetime> lifetimes;
  for (uint32_t i = 0; i < 5000; ++i) lifetimes.push_back({512, i, i + 10, 0});
  const Packing packing = checked(lifetimes);
  EXPECT_EQ(packing.height_bytes, 10 * 512);
}

TEST(PackLifetimes, GrowingSizesCostLittle) {
  // Each step asks for a little more than the step before gave back: what PyTorch's segments suffer from most.
  std::vector<Lifetime> lifetimes;
  for (uint32_t i = 0; i < 400; ++i) lifetimes.push_back({512 * (100 + i), i, i + 2, 0});
  const Packing packing = checked(lifetimes);
  EXPECT_LE(packing.height_bytes, packing.floor_bytes + packing.floor_bytes / 100);
}

TEST(PackLifetimes, TrainingStepsReachTheFloorWithinOnePercent) {
  const Packing packing = checked(training_lifetimes(20, 24));
  EXPECT_LE(packing.height_bytes, packing.floor_bytes + packing.floor_bytes / 100);
}

TEST(PackLifetimes, OffsetsKeepTheAlignmentOfTheSizes) {
  std::vector<Lifetime> lifetimes = random_lifetimes(3, 300, 100, 1000);
  for (Lifetime& lifetime : lifetimes) lifetime.size_bytes *= 512;
  for (int64_t offset : checked(lifetimes).offsets_bytes) EXPECT_EQ(offset % 512, 0);
}

TEST(PackLifetimes, SizesNear2To60Fit) {
  const int64_t huge = int64_t{1} << 60;
  EXPECT_EQ(checked({{huge, 0, 2, 0}, {huge, 1, 3, 0}, {huge - 512, 2, 4, 0}}).height_bytes, 2 * huge);
}

TEST(PackLifetimes, MoreThan2To61BytesAreAnError) {
  const int64_t huge = int64_t{1} << 60;
  const Result<Packing> packing = pack_lifetimes(std::vector<Lifetime>(3, {huge, 0, 1, 0}));
  ASSERT_FALSE(packing);
  EXPECT_EQ(packing.error().code, "packing-too-large");
}

TEST(PackLifetimes, AnOverflowingSumIsAnError) {
  const Result<Packing> packing = pack_lifetimes(std::vector<Lifetime>(9, {int64_t{1} << 60, 0, 1, 0}));
  ASSERT_FALSE(packing);
  EXPECT_EQ(packing.error().code, "live-bytes-overflow");
}

TEST(PackLifetimes, WithoutWorkItStillPacks) { checked(random_lifetimes(5, 3000, 2000, 1 << 20), 0); }

TEST(PackLifetimes, MoreWorkNeverEndsMuchHigher) {
  const std::vector<Lifetime> lifetimes = random_lifetimes(6, 2000, 1000, 1 << 20);
  const int64_t nothing = checked(lifetimes, 0).height_bytes;
  const int64_t little = checked(lifetimes, 2'000'000).height_bytes;
  EXPECT_LT(little, nothing);
}

TEST(PackLifetimes, TheSameInputGivesTheSameOffsets) {
  const std::vector<Lifetime> lifetimes = random_lifetimes(7, 1500, 900, 1 << 20);
  EXPECT_EQ(checked(lifetimes, 3'000'000).offsets_bytes, checked(lifetimes, 3'000'000).offsets_bytes);
}

TEST(PackLifetimes, RandomInstancesAreValid) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const uint32_t count = 1 + seed % 60;
    checked(random_lifetimes(seed, count, 2 + seed % 40, 1 + seed % 9), 100'000);
  }
}

TEST(PackLifetimes, LargeRandomInstancesAreValid) {
  for (uint32_t seed = 0; seed < 4; ++seed) checked(random_lifetimes(seed, 4000, 50'000, 1 << 24), 1'000'000);
}

TEST(PackLifetimes, TinyInstancesArePackedOptimally) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<Lifetime> lifetimes = random_lifetimes(1000 + seed, 7, 8, 6);
    EXPECT_EQ(checked(lifetimes, 100'000).height_bytes, optimal_height(lifetimes)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace oomscope
