// A given state to start from, forced addresses, and the checker of states.
#include <gtest/gtest.h>

#include "support/allocator_rig.h"

namespace oomscope {
namespace {

constexpr uint64_t kBase = 0x200000000000;
constexpr PoolId kUserPool{.first = 0, .second = 1};

// 20 MiB: live, free, pending, free.
const std::vector<AdoptedBlock> kMixed = {{.size = 5 * kMiB, .requested_size = 5 * kMiB - 1, .allocated = true},
                                          {.size = 4 * kMiB},
                                          {.size = 3 * kMiB, .requested_size = 3 * kMiB, .pending = true},
                                          {.size = 8 * kMiB}};

std::vector<Block*> adopt_mixed(Rig& rig) {
  return rig.allocator.adopt_segment(kBase, 20 * kMiB, StreamId{0}, {}, false, false, kMixed);
}

TEST(AdoptSegment, ReturnsLiveAndPendingBlocksInAddressOrder) {
  Rig rig;
  const std::vector<Block*> owned = adopt_mixed(rig);
  ASSERT_EQ(owned.size(), 2u);
  EXPECT_EQ(owned[0]->address, kBase);
  EXPECT_EQ(owned[1]->address, kBase + 9 * kMiB);
}

TEST(AdoptSegment, FreeBlocksServe) {
  Rig rig;
  adopt_mixed(rig);
  EXPECT_EQ(rig.get(4 * kMiB)->address, kBase + 5 * kMiB);
  EXPECT_EQ(rig.device.calls, DriverCalls{});
}

TEST(AdoptSegment, StatisticsCountItAsCurrent) {
  Rig rig;
  adopt_mixed(rig);
  EXPECT_EQ(rig.stats().segment.large().current, 1);
  EXPECT_EQ(rig.stats().reserved_bytes.large().current, 20 * kMiB);
  EXPECT_EQ(rig.stats().allocated_bytes.large().current, 5 * kMiB);
  EXPECT_EQ(rig.stats().active_bytes.large().current, 8 * kMiB);
  EXPECT_EQ(rig.stats().requested_bytes.large().current, 8 * kMiB - 1);
  EXPECT_EQ(rig.stats().inactive_split.large().current, 2);
  EXPECT_EQ(rig.stats().inactive_split_bytes.large().current, 12 * kMiB);
  EXPECT_EQ(rig.stats().num_device_alloc, 0);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(AdoptSegment, PendingBlockIsHeld) {
  Rig rig;
  const std::vector<Block*> owned = adopt_mixed(rig);
  EXPECT_EQ(rig.allocator.held_count(), 1u);
  rig.allocator.complete(owned[1]);
  EXPECT_EQ(owned[1]->size, 15 * kMiB);
}

TEST(AdoptSegment, WhollyFreeSegmentCanBeReleased) {
  Rig rig;
  rig.allocator.adopt_segment(kBase, 2 * kMiB, StreamId{0}, {}, true, false,
                              std::vector<AdoptedBlock>{{.size = 2 * kMiB}});
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(kBase, 2 * kMiB)}));
}

TEST(AdoptSegment, OfAPrivatePoolCountsAsItsDriverAllocation) {
  Rig rig;
  rig.allocator.adopt_segment(kBase, 2 * kMiB, StreamId{0}, kUserPool, true, false,
                              std::vector<AdoptedBlock>{{.size = 2 * kMiB}});
  EXPECT_EQ(rig.allocator.private_pool(kUserPool).device_allocations, 1);
  EXPECT_EQ(rig.get_in(kUserPool, 512)->address, kBase);
}

TEST(AdoptSegment, OversizeBlocksCount) {
  Rig rig({.settings = {.max_split_size_bytes = 40 * kMiB}});
  rig.allocator.adopt_segment(
      kBase, 50 * kMiB, StreamId{0}, {}, false, false,
      std::vector<AdoptedBlock>{{.size = 50 * kMiB, .requested_size = 50 * kMiB, .allocated = true}});
  EXPECT_EQ(rig.stats().oversize_segments.value().current, 1);
  EXPECT_EQ(rig.stats().oversize_allocations.value().current, 1);
}

TEST(AdoptSegment, ExpandableRangeGrowsInItsHole) {
  Rig rig({.settings = {.expandable_segments = true}, .total = 128 * kMiB});
  rig.allocator.adopt_segment(kBase, 160 * kMiB, StreamId{0}, {}, false, true,
                              std::vector<AdoptedBlock>{{.size = 20 * kMiB, .mapped = false},
                                                        {.size = 20 * kMiB, .requested_size = 1, .allocated = true},
                                                        {.size = 120 * kMiB, .mapped = false}});
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  EXPECT_EQ(rig.stats().segment.all().current, 0);
  EXPECT_EQ(rig.get(15 * kMiB)->address, kBase);
}

// --- forced addresses ----------------------------------------------------------------------------------------------

Block* at(Rig& rig, uint64_t address, int64_t bytes) {
  return rig.allocator.malloc_at(address, bytes, StreamId{0}, PoolId{});
}

TEST(MallocAt, TakesTheAddressAndFreesThePrefixAgain) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  const Block* block = at(rig, FakeDevice::kFirst + 8 * kMiB, 4 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->address, FakeDevice::kFirst + 8 * kMiB);
  EXPECT_EQ(block->size, 4 * kMiB);
  EXPECT_EQ(block->prev->size, 8 * kMiB);
  EXPECT_FALSE(block->prev->allocated);
  EXPECT_EQ(block->next->size, 8 * kMiB);
}

TEST(MallocAt, PrefixCountsAsAnAllocationAndAFree) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  at(rig, FakeDevice::kFirst + 8 * kMiB, 4 * kMiB);
  EXPECT_EQ(rig.stats().allocation.all().allocated(), 3);
  EXPECT_EQ(rig.stats().allocation.all().current, 1);
  EXPECT_EQ(rig.stats().requested_bytes.all().allocated(), 32 * kMiB);
}

TEST(MallocAt, StartOfAFreeBlockNeedsNoPrefix) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  at(rig, FakeDevice::kFirst, 4 * kMiB);
  EXPECT_EQ(rig.stats().allocation.all().allocated(), 2);
}

TEST(MallocAt, SplitsByTheOrdinaryRule) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  EXPECT_EQ(at(rig, FakeDevice::kFirst + 8 * kMiB, 11 * kMiB)->size, 12 * kMiB);
}

TEST(MallocAt, RefusesWhatIsNotInsideOneFreeBlock) {
  Rig rig;
  Block* live = rig.get(5 * kMiB);
  EXPECT_EQ(at(rig, live->address, 512 * 1024 * 3), nullptr);
  EXPECT_EQ(at(rig, live->address + 5 * kMiB, 16 * kMiB), nullptr);
  EXPECT_EQ(at(rig, kBase, 2 * kMiB), nullptr);
  EXPECT_EQ(rig.allocator.check_invariants(), "");
}

TEST(MallocAt, RefusesAnAddressThatIsNoMultipleOf512) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  EXPECT_EQ(at(rig, FakeDevice::kFirst + 100, 4 * kMiB), nullptr);
}

TEST(MallocAt, AsksNothingOfTheDriver) {
  Rig rig;
  at(rig, kBase, 4 * kMiB);
  EXPECT_EQ(rig.device.calls, DriverCalls{});
}

// --- the checker ---------------------------------------------------------------------------------------------------

TEST(CheckInvariants, FindsABlockThatDoesNotFollow) {
  FakeDevice device;
  CachingAllocator allocator(default_rule_set(), {}, device);
  Block* block = allocator.malloc(5 * kMiB, StreamId{0});
  block->size += 512;
  EXPECT_NE(allocator.check_invariants(), "");
  block->size -= 512;
  EXPECT_EQ(allocator.check_invariants(), "");
}

TEST(CheckInvariants, FindsNeighboursThatWereNotMerged) {
  FakeDevice device;
  CachingAllocator allocator(default_rule_set(), {}, device);
  Block* block = allocator.malloc(5 * kMiB, StreamId{0});
  block->allocated = false;
  EXPECT_NE(allocator.check_invariants(), "");
  block->allocated = true;
}

// --- checkpoints ---------------------------------------------------------------------------------------------------

TEST(Restore, TilesAPoolWithTheBlocksThatItHad) {
  Rig rig({.settings = {.roundup_power2_divisions = {4, 4, 4, 4}}});
  const PoolId pool{0, 1};
  Block* block = rig.get_in(pool, 100 * 1024);
  const uint64_t base = block->address;
  rig.free(block);
  // Sizes that were rounded once, or were left over: neither is rounded again.
  const int64_t sizes[] = {131072, 629760, 2 * kMiB - 131072 - 629760};
  uint64_t address = base;
  for (const int64_t size : sizes) {
    const Block* restored = rig.allocator.restore(address, size, StreamId{0}, pool);
    ASSERT_NE(restored, nullptr) << size;
    EXPECT_EQ(restored->address, address);
    EXPECT_EQ(restored->size, size);
    EXPECT_EQ(restored->requested_size, size);
    EXPECT_TRUE(restored->segment->pool->is_small);
    address += static_cast<uint64_t>(size);
  }
  EXPECT_EQ(rig.allocator.check_invariants(), "");
  EXPECT_EQ(rig.stats().allocation.all().current, 3);
  EXPECT_EQ(rig.reserved(), 2 * kMiB);
}

// A free block that was a whole segment of the small pool is larger than what that pool serves.
TEST(Restore, IsOfThePoolOfItsSegment) {
  Rig rig;
  const PoolId pool{0, 1};
  Block* block = rig.get_in(pool, 512);
  const uint64_t base = block->address;
  rig.free(block);
  Block* whole = rig.allocator.restore(base, 2 * kMiB, StreamId{0}, pool);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(rig.stats().allocated_bytes.small().current, 2 * kMiB);
  rig.free(whole);
  EXPECT_EQ(rig.get_in(pool, 512)->address, base);
}

TEST(Restore, NeedsAFreeBlockThatBeginsThere) {
  Rig rig;
  const PoolId pool{0, 1};
  Block* block = rig.get_in(pool, 4096);
  const uint64_t base = block->address;
  EXPECT_EQ(rig.allocator.restore(base, 4096, StreamId{0}, pool), nullptr);             // in use
  EXPECT_EQ(rig.allocator.restore(base + 8192, 512, StreamId{0}, pool), nullptr);       // inside a free block
  EXPECT_EQ(rig.allocator.restore(base + 4096, 2 * kMiB, StreamId{0}, pool), nullptr);  // larger than it
  EXPECT_EQ(rig.allocator.restore(base + 4096, 0, StreamId{0}, pool), nullptr);
  EXPECT_EQ(rig.allocator.restore(base + 4096, 512, StreamId{0}, PoolId{}), nullptr);  // another pool's
  EXPECT_EQ(rig.allocator.check_invariants(), "");
}

}  // namespace
}  // namespace oomscope
