// Expandable segments: ranges, pages, growth, holes, unmapping.
#include <gtest/gtest.h>

#include "support/allocator_rig.h"

namespace oomscope {
namespace {

constexpr uint64_t kRange = FakeDevice::kFirstRange;
constexpr uint64_t kNextRange = kRange + FakeDevice::kApart * 64;
constexpr PoolId kUserPool{.first = 0, .second = 1};

// A card of 128 MiB: 9/8 of it are 144 MiB, so ranges have 160 MiB in the large pool and 144 in the small one.
RigOptions expandable() { return {.settings = {.expandable_segments = true}, .total = 128 * kMiB}; }

const Block* first_block(const Rig& rig) { return rig.allocator.segments()[0]->first; }

// --- ranges and pages ----------------------------------------------------------------------------------------------

TEST(ExpandableRange, IsNineEighthsOfTheCardInWholePages) {
  Rig rig(expandable());
  rig.get(5 * kMiB);
  rig.get(512);
  EXPECT_EQ(rig.device.range_calls, (DriverCalls{{DriverCallKind::reserve, kRange, 160 * kMiB},
                                                 {DriverCallKind::reserve, kNextRange, 144 * kMiB}}));
}

TEST(ExpandableRange, EveryStreamHasItsOwn) {
  Rig rig(expandable());
  rig.get(5 * kMiB, 1);
  EXPECT_EQ(rig.get(5 * kMiB, 2)->address, kNextRange);
}

TEST(ExpandableRange, TooSmallForTheRequestIsAnOom) {
  Rig rig(expandable());
  EXPECT_EQ(rig.refuse(161 * kMiB), Refusal::oom);
  EXPECT_EQ(rig.reserved(), 0);
}

TEST(ExpandablePages, AreOf20MiBInTheLargePool) {
  Rig rig(expandable());
  rig.get(5 * kMiB);
  rig.get(30 * kMiB);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 20 * kMiB), mapped(kRange + 20 * kMiB, 20 * kMiB)}));
}

TEST(ExpandablePages, AreOfTwoMiBInTheSmallPool) {
  Rig rig(expandable());
  rig.get(512);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 2 * kMiB)}));
}

TEST(ExpandablePages, FollowTheLargeSegmentSize) {
  RigOptions options = expandable();
  options.settings.large_segment_size_bytes = 32 * kMiB;
  Rig rig(options);
  rig.get(5 * kMiB);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 32 * kMiB)}));
}

TEST(ExpandablePages, OfOneStepAreMappedTogether) {
  Rig rig(expandable());
  rig.get(45 * kMiB);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 60 * kMiB)}));
  EXPECT_EQ(rig.stats().num_device_alloc, 1);
}

TEST(ExpandableSplit, KeepsARemainderOf512BytesInTheLargePool) {
  Rig rig(expandable());
  const Block* block = rig.get(20 * kMiB - 512);
  EXPECT_EQ(block->size, 20 * kMiB - 512);
  EXPECT_EQ(block->next->size, 512);
  EXPECT_TRUE(block->next->mapped);
}

TEST(ExpandableSplit, IgnoresMaxSplitSize) {
  RigOptions options = expandable();
  options.settings.max_split_size_bytes = 40 * kMiB;
  Rig rig(options);
  EXPECT_EQ(rig.get(45 * kMiB)->size, 45 * kMiB);
}

// --- growth --------------------------------------------------------------------------------------------------------

TEST(ExpandableGrowth, StartsAtTheFreeBlockInFront) {
  Rig rig(expandable());
  rig.get(15 * kMiB);
  EXPECT_EQ(rig.get(8 * kMiB)->address, kRange + 15 * kMiB);
  EXPECT_EQ(rig.device.calls.back(), mapped(kRange + 20 * kMiB, 20 * kMiB));
}

TEST(ExpandableGrowth, MapsOnlyWhatIsMissing) {
  Rig rig(expandable());
  rig.get(15 * kMiB);
  rig.get(25 * kMiB);  // 5 MiB are there
  EXPECT_EQ(rig.device.calls.back(), mapped(kRange + 20 * kMiB, 20 * kMiB));
}

TEST(ExpandableGrowth, NewlyMappedObjectSurvivesTheMerge) {
  Rig rig(expandable());
  rig.get(15 * kMiB);
  rig.free(rig.get(5 * kMiB));
  const Block* block = rig.get(8 * kMiB);
  EXPECT_EQ(block->next->requested_size, 0);  // not the 5 MiB of the tail that it absorbed
}

// Three blocks of one page each, then the first page is given back.
struct HoleRig : Rig {
  Block* second;
  Block* third;
  explicit HoleRig(const RigOptions& options = expandable()) : Rig(options) {
    Block* first = get(20 * kMiB);
    second = get(20 * kMiB);
    third = get(20 * kMiB);
    free(first);
    allocator.empty_cache();
    device.calls.clear();
  }
};

TEST(ExpandableGrowth, RefillsTheLowestHole) {
  HoleRig rig;
  EXPECT_EQ(rig.get(15 * kMiB)->address, kRange);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 20 * kMiB)}));
}

TEST(ExpandableGrowth, PassesAHoleThatIsTooSmall) {
  HoleRig rig;
  EXPECT_EQ(rig.get(30 * kMiB)->address, kRange + 60 * kMiB);
}

TEST(ExpandableGrowth, GoesOverAFreeBlockBehindAHole) {
  HoleRig rig;
  rig.free(rig.second);
  EXPECT_EQ(rig.get(40 * kMiB)->address, kRange);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 20 * kMiB)}));
}

TEST(ExpandableGrowth, ReservesANewRangeWhereNothingFits) {
  HoleRig rig;
  EXPECT_EQ(rig.get(120 * kMiB)->address, kNextRange);
}

// Holes at both ends of a free page: a request for 60 MiB takes two map steps.
struct TwoHolesRig : HoleRig {
  explicit TwoHolesRig(const RigOptions& options = expandable()) : HoleRig(options) {
    get_fourth();
    free(third);
    allocator.empty_cache();
    free(second);
    device.calls.clear();
  }
  void get_fourth() {
    Block* fill = get(20 * kMiB);  // goes into the first hole
    get(20 * kMiB);
    free(fill);
  }
};

TEST(ExpandableGrowth, GoesOverSeveralHoles) {
  TwoHolesRig rig;
  EXPECT_EQ(rig.get(60 * kMiB)->address, kRange);
  EXPECT_EQ(rig.device.calls, (DriverCalls{mapped(kRange, 20 * kMiB), mapped(kRange + 40 * kMiB, 20 * kMiB)}));
}

TEST(ExpandableGrowth, EveryMapStepCountsAsADeviceAllocation) {
  TwoHolesRig rig;
  const int64_t before = rig.stats().num_device_alloc;
  rig.get(60 * kMiB);
  EXPECT_EQ(rig.stats().num_device_alloc, before + 2);
}

// Under an open scope nothing is released afterwards, so what the failed request left can be seen.
TEST(ExpandableGrowth, EarlierStepsStayMappedWhenALaterOneFails) {
  RigOptions options = expandable();
  Rig rig(options);
  auto get = [&](int64_t mib) { return rig.get_in(kUserPool, mib * kMiB); };
  Block* first = get(20);
  Block* second = get(20);
  Block* third = get(20);
  get(20);
  rig.free(first);
  rig.free(third);
  rig.allocator.release_pool(kUserPool);
  rig.allocator.empty_cache();
  rig.free(second);
  ASSERT_EQ(rig.reserved(), 40 * kMiB);
  rig.device.refuse_maps = {5};  // four steps so far
  EXPECT_EQ(rig.allocator.malloc_in_pool(60 * kMiB, StreamId{0}, kUserPool), nullptr);
  EXPECT_EQ(rig.reserved(), 60 * kMiB);
  EXPECT_EQ(first_block(rig)->size, 40 * kMiB);
  EXPECT_FALSE(first_block(rig)->allocated);
  EXPECT_EQ(rig.stats().num_ooms, 1);
}

TEST(ExpandableGrowth, RefusedFirstStepMapsNothing) {
  RigOptions options = expandable();
  Rig rig(options);
  rig.device.capacity = 30 * kMiB;
  EXPECT_EQ(rig.refuse(45 * kMiB), Refusal::oom);
  EXPECT_EQ(rig.reserved(), 0);
  EXPECT_EQ(rig.stats().num_device_alloc, 0);
}

TEST(ExpandableLimit, IsTestedWithTheSegmentSizeNotThePages) {
  RigOptions options = expandable();
  options.limit = 15 * kMiB;
  Rig rig(options);
  rig.get(12 * kMiB);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(ExpandableLimit, RefusesWhereTheMissingPagesWouldFit) {
  RigOptions options = expandable();
  options.limit = 42 * kMiB;
  Rig rig(options);
  rig.get(15 * kMiB);
  EXPECT_EQ(rig.refuse(24 * kMiB), Refusal::oom);  // one page is missing, 24 MiB are tested
}

TEST(ExpandableLimit, MiddleSizesAreTestedWith20MiB) {
  RigOptions options = expandable();
  options.limit = 39 * kMiB;
  Rig rig(options);
  rig.get(15 * kMiB);
  EXPECT_EQ(rig.refuse(9 * kMiB), Refusal::oom);
}

// --- which free block ----------------------------------------------------------------------------------------------

// An enclosed free block of 12 MiB in front, a tail of 5 MiB that touches unmapped space.
TEST(ExpandableBestFit, EnclosedBlockGoesBeforeTheGrowingTail) {
  Rig rig(expandable());
  Block* enclosed = rig.get(12 * kMiB);
  rig.get(3 * kMiB);
  rig.free(enclosed);
  EXPECT_EQ(rig.get(4 * kMiB)->address, kRange);
}

TEST(ExpandableBestFit, TailServesIfNoOtherBlockDoes) {
  Rig rig(expandable());
  rig.get(15 * kMiB);
  EXPECT_EQ(rig.get(4 * kMiB)->address, kRange + 15 * kMiB);
}

TEST(ExpandableBestFit, SmallestEnclosedBlockIsTaken) {
  Rig rig(expandable());
  Block* large = rig.get(8 * kMiB);
  rig.get(kMiB + 512);
  Block* small = rig.get(6 * kMiB);
  const uint64_t expected = small->address;
  rig.get(kMiB + 512);
  rig.free(large);
  rig.free(small);
  EXPECT_EQ(rig.get(2 * kMiB)->address, expected);
}

TEST(ExpandableBestFit, MaxSplitSizeStillRefusesOversizeBlocks) {
  RigOptions options = expandable();
  options.settings.max_split_size_bytes = 40 * kMiB;
  Rig rig(options);
  Block* block = rig.get(50 * kMiB);
  rig.get(10 * kMiB);
  rig.free(block);
  EXPECT_EQ(rig.get(30 * kMiB)->address, kRange + 60 * kMiB);
}

// The range was made before the setting was switched off.
TEST(ExpandableOff, FreePagesServeNobody) {
  Rig rig({.total = 128 * kMiB});
  const std::vector<AdoptedBlock> blocks = {{.size = 20 * kMiB},
                                            {.size = 20 * kMiB, .requested_size = 20 * kMiB, .allocated = true},
                                            {.size = 120 * kMiB, .mapped = false}};
  rig.allocator.adopt_segment(kRange, 160 * kMiB, StreamId{0}, {}, false, true, blocks);
  EXPECT_EQ(rig.get(5 * kMiB)->address, FakeDevice::kFirst);
}

TEST(ExpandableOff, LargerOrdinaryBlockBehindThePagesServes) {
  Rig rig({.total = 128 * kMiB});
  rig.free(rig.get(30 * kMiB));
  const std::vector<AdoptedBlock> blocks = {{.size = 20 * kMiB},
                                            {.size = 20 * kMiB, .requested_size = 20 * kMiB, .allocated = true},
                                            {.size = 120 * kMiB, .mapped = false}};
  rig.allocator.adopt_segment(kRange, 160 * kMiB, StreamId{0}, {}, false, true, blocks);
  EXPECT_EQ(rig.get(5 * kMiB)->address, FakeDevice::kFirst);
  EXPECT_EQ(rig.stats().num_device_alloc, 1);
}

TEST(ExpandableOff, EmptyCacheStillUnmaps) {
  Rig rig({.total = 128 * kMiB});
  const std::vector<AdoptedBlock> blocks = {{.size = 40 * kMiB}, {.size = 120 * kMiB, .mapped = false}};
  rig.allocator.adopt_segment(kRange, 160 * kMiB, StreamId{0}, {}, false, true, blocks);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0);
  EXPECT_TRUE(rig.allocator.segments().empty());
}

// --- private pools -------------------------------------------------------------------------------------------------

TEST(ExpandablePrivatePool, HasItsOwnRange) {
  Rig rig(expandable());
  rig.get(5 * kMiB);
  EXPECT_EQ(rig.get_in(kUserPool, 5 * kMiB)->address, kNextRange);
}

TEST(ExpandablePrivatePool, IsOrdinaryUpToTorch24) {
  RigOptions options = expandable();
  options.rules = rules_named("2.4");
  Rig rig(options);
  EXPECT_EQ(rig.get_in(kUserPool, 5 * kMiB)->address, FakeDevice::kFirst);
}

TEST(ExpandablePrivatePool, WithItsOwnAllocatorIsOrdinary) {
  Rig rig(expandable());
  rig.allocator.private_pool(kUserPool).custom_allocator = true;
  EXPECT_EQ(rig.get_in(kUserPool, 5 * kMiB)->address, FakeDevice::kFirst);
}

TEST(ExpandablePrivatePool, WithItsOwnAllocatorIsAnErrorFromTorch25To29) {
  for (const char* rules : {"2.6", "2.9"}) {
    RigOptions options = expandable();
    options.rules = rules_named(rules);
    Rig rig(options);
    rig.allocator.private_pool(kUserPool).custom_allocator = true;
    EXPECT_EQ(rig.allocator.malloc_in_pool(5 * kMiB, StreamId{}, kUserPool), nullptr) << rules;
    EXPECT_EQ(rig.allocator.refusal(), Refusal::impossible) << rules;
    EXPECT_EQ(rig.stats().num_ooms, 0) << rules;
    EXPECT_EQ(rig.reserved(), 0) << rules;
  }
}

TEST(ExpandablePrivatePool, WithItsOwnAllocatorServesFreeBlocksWhereAskingTheDriverIsAnError) {
  RigOptions options = expandable();
  options.rules = rules_named("2.9");
  Rig rig(options);
  rig.free(rig.get_in(kUserPool, 5 * kMiB));
  rig.allocator.private_pool(kUserPool).custom_allocator = true;
  EXPECT_NE(rig.allocator.malloc_in_pool(5 * kMiB, StreamId{}, kUserPool), nullptr);
}

TEST(ExpandablePrivatePool, OrdinaryBlockSplitsAsTheSettingSaysUpToTorch29) {
  for (const auto& [rules, size] : {std::pair("2.4", 11 * kMiB), std::pair("2.11", 12 * kMiB)}) {
    RigOptions options = expandable();
    options.rules = rules_named(rules);
    Rig rig(options);
    rig.allocator.private_pool(kUserPool).custom_allocator = true;
    EXPECT_EQ(rig.get_in(kUserPool, 11 * kMiB)->size, size) << rules;
  }
}

TEST(ExpandablePrivatePool, DriverCountRisesOncePerRequest) {
  Rig rig(expandable());
  rig.get_in(kUserPool, 45 * kMiB);
  EXPECT_EQ(rig.allocator.private_pool(kUserPool).device_allocations, 1);
  rig.get_in(kUserPool, 15 * kMiB);  // served by what is mapped
  EXPECT_EQ(rig.allocator.private_pool(kUserPool).device_allocations, 1);
}

TEST(ExpandablePrivatePool, UnmapLowersTheDriverCount) {
  for (bool lowers : {true, false}) {
    RigOptions options = expandable();
    options.rules.unmap_lowers_pool_count = lowers;
    Rig rig(options);
    Block* block = rig.get_in(kUserPool, 20 * kMiB);
    rig.get_in(kUserPool, 20 * kMiB);
    rig.free(block);
    rig.allocator.release_pool(kUserPool);
    rig.allocator.empty_cache();
    EXPECT_EQ(rig.allocator.private_pool(kUserPool).device_allocations, lowers ? 1 : 2);
  }
}

// --- unmapping -----------------------------------------------------------------------------------------------------

TEST(Unmap, GivesBackWholePagesOnly) {
  Rig rig(expandable());
  rig.get(5 * kMiB);
  Block* block = rig.get(50 * kMiB);
  rig.get(3 * kMiB);
  rig.free(block);
  rig.device.calls.clear();
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.calls, (DriverCalls{unmapped(kRange + 20 * kMiB, 20 * kMiB)}));
  EXPECT_EQ(rig.reserved(), 40 * kMiB);
  EXPECT_EQ(rig.stats().num_device_free, 1);
}

TEST(Unmap, PartsBeforeAndBehindStayFree) {
  Rig rig(expandable());
  const Block* first = rig.get(5 * kMiB);
  Block* block = rig.get(50 * kMiB);
  rig.get(3 * kMiB);
  rig.free(block);
  rig.allocator.empty_cache();
  const Block* before = first->next;
  EXPECT_EQ(before->size, 15 * kMiB);
  EXPECT_TRUE(before->mapped);
  EXPECT_EQ(before->next->size, 20 * kMiB);
  EXPECT_FALSE(before->next->mapped);
  EXPECT_EQ(before->next->next->size, 15 * kMiB);
  EXPECT_TRUE(before->next->next->mapped);
}

TEST(Unmap, OldObjectStaysWithTheUnmappedMiddle) {
  Rig rig(expandable());
  const Block* first = rig.get(5 * kMiB);
  Block* block = rig.get(50 * kMiB);
  rig.get(3 * kMiB);
  rig.free(block);
  rig.allocator.empty_cache();
  EXPECT_EQ(first->next->requested_size, 0);
  EXPECT_EQ(first->next->next->requested_size, 50 * kMiB);
  EXPECT_EQ(first->next->next->next->requested_size, 0);
}

TEST(Unmap, LessThanAPageStays) {
  Rig rig(expandable());
  rig.get(5 * kMiB);
  Block* block = rig.get(14 * kMiB);
  rig.free(block);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  EXPECT_EQ(rig.stats().num_device_free, 0);
}

TEST(Unmap, TailMergesWithTheUnmappedRest) {
  Rig rig(expandable());
  const Block* first = rig.get(20 * kMiB);
  rig.free(rig.get(20 * kMiB));
  rig.allocator.empty_cache();
  EXPECT_EQ(first->next->size, 140 * kMiB);
  EXPECT_EQ(first->next->next, nullptr);
}

TEST(Unmap, EmptyRangeDisappears) {
  Rig rig(expandable());
  rig.free(rig.get(30 * kMiB));
  rig.allocator.empty_cache();
  EXPECT_TRUE(rig.allocator.segments().empty());
  EXPECT_EQ(rig.device.range_calls.back(), (DriverCall{DriverCallKind::release_range, kRange, 160 * kMiB}));
  EXPECT_EQ(rig.get(5 * kMiB)->address, kNextRange);
}

TEST(Unmap, HappensAfterOrdinarySegmentsOfTheSetWereFreed) {
  Rig rig(expandable());
  rig.allocator.adopt_segment(FakeDevice::kFirst, 60 * kMiB, StreamId{0}, {}, false, false,
                              std::vector<AdoptedBlock>{{.size = 60 * kMiB}});
  rig.free(rig.get(70 * kMiB, 1));
  rig.free(rig.get(20 * kMiB, 1));
  rig.device.calls.clear();
  rig.allocator.empty_cache();
  ASSERT_EQ(rig.device.calls.size(), 2u);
  EXPECT_EQ(rig.device.calls[0], released(FakeDevice::kFirst, 60 * kMiB));
  EXPECT_EQ(rig.device.calls[1], unmapped(kRange, 80 * kMiB));
}

// --- statistics ----------------------------------------------------------------------------------------------------

TEST(ExpandableStats, SegmentsAreNotCounted) {
  RigOptions options = expandable();
  options.settings.max_split_size_bytes = 40 * kMiB;
  Rig rig(options);
  rig.free(rig.get(60 * kMiB));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().segment.all().allocated(), 0);
  EXPECT_EQ(rig.stats().oversize_segments.value().allocated(), 0);
}

TEST(ExpandableStats, SplitsAreNotCounted) {
  Rig rig(expandable());
  Block* block = rig.get(5 * kMiB);
  rig.get(5 * kMiB);
  rig.free(block);
  EXPECT_EQ(rig.stats().inactive_split.all().allocated(), 0);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().allocated(), 0);
}

TEST(ExpandableStats, ReservedBytesCountMappedPages) {
  Rig rig(expandable());
  rig.get(25 * kMiB);
  rig.get(512);
  EXPECT_EQ(rig.stats().reserved_bytes.large().current, 40 * kMiB);
  EXPECT_EQ(rig.stats().reserved_bytes.small().current, 2 * kMiB);
}

}  // namespace
}  // namespace oomscope
