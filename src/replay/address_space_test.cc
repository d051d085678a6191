#include "replay/address_space.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kCard = int64_t{80} << 30;

uint64_t get(AddressSpace& space, int64_t mib) { return space.allocate(mib * kMiB, StreamId{}); }

TEST(AddressSpace, DownGoesBelowAllEarlierSegments) {
  AddressSpace space(AddressPolicy::down, kCard);
  const uint64_t first = get(space, 20);
  const uint64_t second = get(space, 40);
  EXPECT_EQ(second, first - 40 * kMiB);
}

TEST(AddressSpace, UpGoesAboveAllEarlierSegments) {
  AddressSpace space(AddressPolicy::up, kCard);
  const uint64_t first = get(space, 20);
  EXPECT_EQ(get(space, 40), first + 20 * kMiB);
}

TEST(AddressSpace, NewChunkLiesBelowTheOthers) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t first = get(space, 32);
  EXPECT_EQ(get(space, 32), first - 32 * kMiB);
}

TEST(AddressSpace, SegmentSitsAtTheStartOfItsChunk) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t first = get(space, 32);
  EXPECT_EQ(get(space, 20), first - 32 * kMiB);
}

TEST(AddressSpace, HighestGapThatFitsIsTaken) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t first = get(space, 64);
  get(space, 32);
  const uint64_t third = get(space, 96);
  get(space, 32);
  space.release(first, 64 * kMiB);
  space.release(third, 96 * kMiB);
  EXPECT_EQ(get(space, 96), third);
  EXPECT_EQ(get(space, 32), first + 32 * kMiB);
}

// The gap below the recorded first segment is one with what is released next to it, wherever that segment lies.
TEST(AddressSpace, GapsJoinBelowARecordedFirstSegment) {
  constexpr uint64_t kFirst = 0x7faae4000000;
  AddressSpace space(AddressPolicy::chunks, kCard, {.first_segment = kFirst, .holes = {}});
  EXPECT_EQ(get(space, 32), kFirst);
  const uint64_t second = get(space, 32);
  const uint64_t third = get(space, 32);
  get(space, 32);
  space.release(second, 32 * kMiB);
  space.release(third, 32 * kMiB);
  EXPECT_EQ(get(space, 64), kFirst - 64 * kMiB);
}

TEST(AddressSpace, CardWithoutRoomRefuses) {
  AddressSpace space(AddressPolicy::chunks, kCard, {}, 60 * kMiB);
  const uint64_t first = get(space, 40);
  EXPECT_EQ(get(space, 22), 0u);
  EXPECT_FALSE(space.map(0x1000, 22 * kMiB, 2 * kMiB));
  EXPECT_NE(get(space, 20), 0u);
  space.release(first, 40 * kMiB);
  EXPECT_TRUE(space.map(0x1000, 40 * kMiB, 20 * kMiB));
}

TEST(AddressSpace, RefusesWhereNoAddressesAreLeft) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  constexpr int64_t kHuge = 100'000'000;  // MiB
  EXPECT_NE(get(space, kHuge), 0u);
  const uint64_t small = get(space, 32);
  EXPECT_EQ(get(space, kHuge), 0u);
  EXPECT_EQ(get(space, kHuge), 0u);
  space.release(small, 32 * kMiB);
}

TEST(AddressSpace, HoleOfAChunkIsFilledBeforeANewOneIsMade) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t first = get(space, 20);
  EXPECT_EQ(get(space, 12), first + 20 * kMiB);
}

TEST(AddressSpace, LowestHoleThatFitsIsTaken) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  get(space, 20);
  const uint64_t second = get(space, 20);
  EXPECT_EQ(get(space, 2), second + 20 * kMiB);
}

TEST(AddressSpace, EmptiedChunkIsGivenBack) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t first = get(space, 20);
  get(space, 32);
  space.release(first, 20 * kMiB);
  EXPECT_EQ(get(space, 32), first);  // the highest gap again
}

TEST(AddressSpace, FreedNeighboursJoin) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t a = get(space, 20);
  const uint64_t b = get(space, 10);
  const uint64_t c = get(space, 2);
  ASSERT_EQ(c, a + 30 * kMiB);
  space.release(a, 20 * kMiB);
  space.release(b, 10 * kMiB);
  EXPECT_EQ(get(space, 30), a);
}

TEST(AddressSpace, HintsSayWhereTheFirstSegmentsGo) {
  const uint64_t first = 0x7f1000000000;
  const AddressHints hints{.first_segment = first, .holes = {{first - 64 * kMiB, 64 * kMiB}}};
  AddressSpace space(AddressPolicy::chunks, kCard, hints);
  EXPECT_EQ(get(space, 2), first);
  EXPECT_EQ(get(space, 20), first - 64 * kMiB);
}

TEST(AddressSpace, RangesRiseAndDoNotTouch) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  const uint64_t first = space.reserve(100 * kMiB, 20 * kMiB);
  EXPECT_GE(space.reserve(100 * kMiB, 20 * kMiB), first + 100 * kMiB);
}

// No two live segments overlap, whatever is obtained and released.
TEST(AddressSpace, SegmentsNeverOverlap) {
  AddressSpace space(AddressPolicy::chunks, kCard);
  std::map<uint64_t, int64_t> live;
  uint64_t random = 1;
  for (int i = 0; i < 5000; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    if ((random >> 33) % 5 < 3 || live.empty()) {
      const int64_t size = static_cast<int64_t>((random >> 40) % 40 + 1) * 2 * kMiB;
      const uint64_t address = space.allocate(size, StreamId{});
      auto next = live.lower_bound(address);
      if (next != live.end()) {
        ASSERT_LE(address + static_cast<uint64_t>(size), next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + static_cast<uint64_t>(std::prev(next)->second), address);
      }
      live[address] = size;
    } else {
      auto gone = std::next(live.begin(), static_cast<ptrdiff_t>((random >> 40) % live.size()));
      space.release(gone->first, gone->second);
      live.erase(gone);
    }
  }
}

}  // namespace
}  // namespace oomscope
