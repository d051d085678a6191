// Search, acceptance, carving, merging, the chain of attempts, and refusals. Expected values follow from the rules of
// PyTorch's allocator, not from our code.
#include "caching/allocator.h"

#include <gtest/gtest.h>

#include "support/allocator_rig.h"

namespace oomscope {
namespace {

constexpr uint64_t kFirst = FakeDevice::kFirst;
constexpr uint64_t kSecond = kFirst + FakeDevice::kApart;
constexpr PoolId kGraphPool{.first = 1, .second = 0};
constexpr PoolId kUserPool{.first = 0, .second = 1};

AllocatorSettings split_at(int64_t max_split_mib) { return {.max_split_size_bytes = max_split_mib * kMiB}; }

// --- pools and segments --------------------------------------------------------------------------------------------

TEST(Malloc, SmallRequestObtainsTwoMiB) {
  Rig rig;
  EXPECT_EQ(rig.get(100)->address, kFirst);
  EXPECT_EQ(rig.device.calls, (DriverCalls{allocated(kFirst, 2 * kMiB)}));
}

TEST(Malloc, LargeRequestObtains20MiB) {
  Rig rig;
  rig.get(kMiB + 1);
  EXPECT_EQ(rig.device.calls, (DriverCalls{allocated(kFirst, 20 * kMiB)}));
}

TEST(Malloc, From10MiBOnTheSegmentIsTheRequest) {
  Rig rig;
  rig.get(11 * kMiB);
  EXPECT_EQ(rig.device.calls, (DriverCalls{allocated(kFirst, 12 * kMiB)}));
}

TEST(Malloc, LargeBlockNeverServesASmallRequest) {
  Rig rig;
  rig.free(rig.get(5 * kMiB));
  EXPECT_EQ(rig.get(100)->address, kSecond);
}

TEST(Malloc, SmallBlockNeverServesALargeRequest) {
  Rig rig;
  rig.free(rig.get(100));
  EXPECT_EQ(rig.get(kMiB + 512)->address, kSecond);
}

TEST(Malloc, FreeBlockServesItsOwnStreamOnly) {
  Rig rig;
  rig.free(rig.get(5 * kMiB, 1));
  EXPECT_EQ(rig.get(5 * kMiB, 2)->address, kSecond);
  EXPECT_EQ(rig.get(5 * kMiB, 1)->address, kFirst);
}

TEST(Malloc, SmallestBlockThatServesIsTaken) {
  Rig rig;
  Block* large = rig.get(40 * kMiB);
  Block* middle = rig.get(30 * kMiB);
  const uint64_t expected = middle->address;
  rig.free(large);
  rig.free(middle);
  EXPECT_EQ(rig.get(25 * kMiB)->address, expected);
}

TEST(Malloc, PeekFindsWhatMallocWouldTake) {
  Rig rig;
  EXPECT_EQ(rig.allocator.peek(5 * kMiB, StreamId{0}, PoolId{}), nullptr);
  rig.free(rig.get(5 * kMiB));
  const Block* found = rig.allocator.peek(3 * kMiB, StreamId{0}, PoolId{});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->address, kFirst);
  EXPECT_EQ(rig.stats().allocation.all().current, 0);
}

// --- ties ----------------------------------------------------------------------------------------------------------

// Two free segments of 20 MiB; the second one lies below the first.
uint64_t winner_of_two_segments(const RuleSet& rules, PoolId pool = {}, bool custom = false) {
  Rig rig({.rules = rules});
  rig.device.addresses = {2 * kFirst, kFirst};
  if (!pool.is_default()) rig.allocator.private_pool(pool).custom_allocator = custom;
  Block* first = rig.get_in(pool, 20 * kMiB);
  Block* second = rig.get_in(pool, 20 * kMiB);
  rig.free(first);
  rig.free(second);
  return rig.get_in(pool, 20 * kMiB)->address;
}

TEST(TieBreak, LowestAddressWinsUpToTorch211) { EXPECT_EQ(winner_of_two_segments(rules_named("2.11")), kFirst); }

TEST(TieBreak, FirstBuiltBlockWinsInTorch212) { EXPECT_EQ(winner_of_two_segments(rules_named("2.12")), 2 * kFirst); }

TEST(TieBreak, OldestSegmentWinsSinceTorch213) { EXPECT_EQ(winner_of_two_segments(rules_named("2.13")), 2 * kFirst); }

TEST(TieBreak, CounterIsForCustomPoolsOnlyInTorch212Custom) {
  const RuleSet rules = rules_named("2.12-custom");
  EXPECT_EQ(winner_of_two_segments(rules), kFirst);
  EXPECT_EQ(winner_of_two_segments(rules, kUserPool, false), kFirst);
  EXPECT_EQ(winner_of_two_segments(rules, kUserPool, true), 2 * kFirst);
}

// Segment 1 (low): a free front of 5 MiB, built last. Segment 2 (high): a free remainder of 5 MiB, which kept the
// number of its segment's first block.
uint64_t winner_of_front_and_remainder(const RuleSet& rules) {
  Rig rig({.rules = rules});
  Block* one = rig.get(20 * kMiB);
  Block* two = rig.get(20 * kMiB);
  rig.free(one);
  Block* front = rig.get(5 * kMiB);
  rig.get(15 * kMiB);
  rig.free(two);
  rig.get(15 * kMiB);
  rig.free(front);
  return rig.get(5 * kMiB)->address;
}

TEST(TieBreak, RemainderKeepsItsNumberAndTheFrontGetsANewOne) {
  EXPECT_EQ(winner_of_front_and_remainder(rules_named("2.12")), kSecond + 15 * kMiB);
  EXPECT_EQ(winner_of_front_and_remainder(rules_named("2.13")), kFirst);
  EXPECT_EQ(winner_of_front_and_remainder(rules_named("2.11")), kFirst);
}

// Segment 1 was split and merged again: the freed front survives, with the younger number.
uint64_t winner_after_merge(const RuleSet& rules) {
  Rig rig({.rules = rules});
  Block* one = rig.get(20 * kMiB);
  Block* two = rig.get(20 * kMiB);
  rig.free(one);
  rig.free(rig.get(5 * kMiB));
  rig.free(two);
  return rig.get(20 * kMiB)->address;
}

TEST(TieBreak, MergedBlockHasTheNumberOfTheFreedOne) {
  EXPECT_EQ(winner_after_merge(rules_named("2.12")), kSecond);
  EXPECT_EQ(winner_after_merge(rules_named("2.13")), kFirst);
}

TEST(TieBreak, InsideASegmentTheLowestAddressWins) {
  Rig rig({.rules = rules_named("2.13")});
  Block* a = rig.get(4 * kMiB);
  rig.get(4 * kMiB);
  Block* b = rig.get(4 * kMiB);
  rig.get(8 * kMiB);
  rig.free(b);
  rig.free(a);
  EXPECT_EQ(rig.get(4 * kMiB)->address, kFirst);
}

TEST(TieBreak, ChoiceBetweenEqualBlocksOfTwoSegmentsIsCounted) {
  Rig rig;
  Block* one = rig.get(20 * kMiB);
  Block* two = rig.get(20 * kMiB);
  rig.free(one);
  rig.free(two);
  EXPECT_EQ(rig.allocator.address_ties(), 0);
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.allocator.address_ties(), 1);
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.allocator.address_ties(), 1);
}

// --- acceptance with max_split_size --------------------------------------------------------------------------------

TEST(MaxSplitSize, OversizeBlockIsNotForASmallerRequest) {
  Rig rig({.settings = split_at(40)});
  rig.free(rig.get(50 * kMiB));
  EXPECT_EQ(rig.get(30 * kMiB)->address, kSecond);
}

TEST(MaxSplitSize, BlockOfExactlyMaxSplitSizeIsOversize) {
  Rig rig({.settings = split_at(40)});
  rig.free(rig.get(40 * kMiB));
  EXPECT_EQ(rig.get(38 * kMiB)->address, kSecond);
}

TEST(MaxSplitSize, OversizeRequestTakesABlockLessThan20MiBLarger) {
  Rig rig({.settings = split_at(40)});
  rig.free(rig.get(62 * kMiB));
  EXPECT_EQ(rig.get(44 * kMiB)->address, kFirst);
}

TEST(MaxSplitSize, OversizeRequestRefusesABlock20MiBLarger) {
  Rig rig({.settings = split_at(40)});
  rig.free(rig.get(62 * kMiB));
  EXPECT_EQ(rig.get(42 * kMiB)->address, kSecond);
}

TEST(MaxSplitSize, NonSplitRoundingMovesTheBound) {
  AllocatorSettings settings = split_at(40);
  settings.max_non_split_rounding_bytes = 30 * kMiB;
  Rig rig({.settings = settings});
  rig.free(rig.get(70 * kMiB));
  EXPECT_EQ(rig.get(42 * kMiB)->address, kFirst);
}

TEST(MaxSplitSize, NonSplitRoundingIs20MiBUpToTorch24) {
  AllocatorSettings settings = split_at(40);
  settings.max_non_split_rounding_bytes = 30 * kMiB;
  Rig rig({.settings = settings, .rules = rules_named("2.4")});
  rig.free(rig.get(70 * kMiB));
  EXPECT_EQ(rig.get(42 * kMiB)->address, kSecond);
}

TEST(MaxSplitSize, At20MiBAnEmptySegmentNeverServesAgain) {
  Rig rig({.settings = split_at(20)});
  rig.free(rig.get(5 * kMiB));
  EXPECT_EQ(rig.get(5 * kMiB)->address, kSecond);
}

TEST(MaxSplitSize, OversizeBlockIsHandedOutWhole) {
  Rig rig({.settings = split_at(40)});
  rig.free(rig.get(54 * kMiB));
  EXPECT_EQ(rig.get(40 * kMiB)->size, 54 * kMiB);
}

TEST(MaxSplitSize, SmallerRequestSplitsAsEver) {
  Rig rig({.settings = split_at(40)});
  EXPECT_EQ(rig.get(5 * kMiB)->size, 5 * kMiB);
}

// --- carving -------------------------------------------------------------------------------------------------------

TEST(Carve, SplitKeepsRemainderOf512Bytes) {
  Rig rig;
  rig.get(kMiB);
  Block* block = rig.get(kMiB - 512);
  ASSERT_NE(block->next, nullptr);
  EXPECT_EQ(block->next->size, 512);
}

TEST(Carve, SmallBlockThatFitsIsHandedOutWhole) {
  Rig rig;
  rig.get(kMiB);
  EXPECT_EQ(rig.get(kMiB)->next, nullptr);
}

TEST(Carve, LargeRemainderOfOneMiBStaysWithTheBlock) {
  Rig rig;
  Block* block = rig.get(11 * kMiB);
  EXPECT_EQ(block->size, 12 * kMiB);
  EXPECT_EQ(block->next, nullptr);
}

TEST(Carve, LargeRemainderAboveOneMiBIsSplitOff) {
  Rig rig;
  Block* block = rig.get(11 * kMiB - 512);
  EXPECT_EQ(block->size, 11 * kMiB - 512);
  ASSERT_NE(block->next, nullptr);
  EXPECT_EQ(block->next->size, kMiB + 512);
}

TEST(Carve, RequestGetsTheFront) {
  Rig rig;
  Block* block = rig.get(5 * kMiB);
  EXPECT_EQ(block->address, kFirst);
  EXPECT_EQ(block->next->address, kFirst + 5 * kMiB);
}

TEST(Carve, RemainderKeepsTheStaleRequestedSize) {
  Rig rig;
  rig.free(rig.get(20 * kMiB - 100));
  EXPECT_EQ(rig.get(5 * kMiB)->next->requested_size, 20 * kMiB - 100);
}

TEST(Carve, RemainderOfAFreshSegmentWasNeverRequested) {
  Rig rig;
  EXPECT_EQ(rig.get(5 * kMiB)->next->requested_size, 0);
}

TEST(Carve, BlockOfANoSplitPoolIsNeverSplit) {
  Rig rig;
  rig.allocator.private_pool(kUserPool).no_split = true;
  EXPECT_EQ(rig.get_in(kUserPool, 5 * kMiB)->size, 20 * kMiB);
  EXPECT_EQ(rig.get_in(kUserPool, 512)->size, 2 * kMiB);
}

TEST(Carve, NoSplitPoolsAreUnknownUpToTorch29) {
  Rig rig({.rules = rules_named("2.9")});
  rig.allocator.private_pool(kUserPool).no_split = true;
  EXPECT_EQ(rig.get_in(kUserPool, 5 * kMiB)->size, 5 * kMiB);
}

// --- freeing and merging -------------------------------------------------------------------------------------------

TEST(Free, MergesWithBothNeighbours) {
  Rig rig;
  Block* a = rig.get(4 * kMiB);
  Block* b = rig.get(4 * kMiB);
  Block* c = rig.get(12 * kMiB);
  rig.free(a);
  rig.free(c);
  rig.free(b);
  ASSERT_EQ(rig.allocator.segments().size(), 1u);
  const Block* whole = rig.allocator.segments()[0]->first;
  EXPECT_EQ(whole->size, 20 * kMiB);
  EXPECT_EQ(whole->next, nullptr);
}

TEST(Free, FreedObjectSurvivesTheMerge) {
  Rig rig;
  Block* a = rig.get(4 * kMiB - 1);
  Block* b = rig.get(4 * kMiB - 2);
  rig.get(12 * kMiB);
  rig.free(b);
  rig.free(a);
  EXPECT_EQ(rig.allocator.segments()[0]->first->requested_size, 4 * kMiB - 1);
}

TEST(Free, FreedObjectAbsorbsTheBlockInFront) {
  Rig rig;
  Block* a = rig.get(4 * kMiB - 1);
  Block* b = rig.get(4 * kMiB - 2);
  rig.get(12 * kMiB);
  rig.free(a);
  rig.free(b);
  const Block* merged = rig.allocator.segments()[0]->first;
  EXPECT_EQ(merged->address, kFirst);
  EXPECT_EQ(merged->size, 8 * kMiB);
  EXPECT_EQ(merged->requested_size, 4 * kMiB - 2);
}

TEST(Free, BlocksOfTouchingSegmentsStayApart) {
  Rig rig;
  rig.device.addresses = {kFirst, kFirst + 20 * kMiB};
  Block* a = rig.get(20 * kMiB);
  Block* b = rig.get(20 * kMiB);
  rig.free(a);
  rig.free(b);
  EXPECT_EQ(rig.get(40 * kMiB)->address, kFirst);  // a new segment, where the device starts without a script
  EXPECT_EQ(rig.stats().segment.all().current, 3);
}

TEST(Free, PendingNeighbourIsNotAbsorbed) {
  Rig rig;
  Block* a = rig.get(4 * kMiB);
  Block* b = rig.get(4 * kMiB);
  rig.get(12 * kMiB);
  rig.allocator.free_held(a);
  rig.free(b);
  EXPECT_EQ(rig.allocator.segments()[0]->first->size, 4 * kMiB);
  rig.allocator.complete(a);
  EXPECT_EQ(rig.allocator.segments()[0]->first->size, 8 * kMiB);
}

// --- the limit -----------------------------------------------------------------------------------------------------

TEST(Limit, MayBeReachedExactly) {
  Rig rig({.limit = 40 * kMiB});
  rig.get(20 * kMiB);
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.refuse(2 * kMiB), Refusal::oom);
}

TEST(Limit, OneByteLessRefuses) {
  Rig rig({.limit = 40 * kMiB - 1});
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.refuse(20 * kMiB), Refusal::oom);
}

TEST(Limit, IsTestedWithTheSegmentNotTheRequest) {
  Rig rig({.limit = 21 * kMiB});
  rig.get(512);
  EXPECT_EQ(rig.refuse(2 * kMiB), Refusal::oom);
}

TEST(Limit, RefusalAsksNothingOfTheDriver) {
  Rig rig({.limit = 10 * kMiB});
  rig.refuse(20 * kMiB);
  EXPECT_EQ(rig.device.calls, DriverCalls{});
}

TEST(Limit, SmallestRefusedTotalIsRemembered) {
  Rig rig({.limit = 30 * kMiB});
  EXPECT_FALSE(rig.allocator.smallest_refused_bytes().has_value());
  rig.get(20 * kMiB);
  rig.refuse(40 * kMiB);
  rig.refuse(12 * kMiB);
  EXPECT_EQ(rig.allocator.smallest_refused_bytes(), 32 * kMiB);
}

// --- the chain of attempts -----------------------------------------------------------------------------------------

TEST(Chain, RefusedRequestReleasesAllAndTriesOnceMore) {
  Rig rig;
  rig.device.capacity = 40 * kMiB;
  rig.free(rig.get(20 * kMiB));
  rig.device.calls.clear();
  rig.get(30 * kMiB);
  EXPECT_EQ(rig.device.calls,
            (DriverCalls{refused(30 * kMiB), released(kFirst, 20 * kMiB), allocated(kSecond, 30 * kMiB)}));
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(rig.stats().num_ooms, 0);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 1);
}

TEST(Chain, OomAfterTheRetryCountsBoth) {
  Rig rig;
  rig.device.capacity = 40 * kMiB;
  EXPECT_EQ(rig.refuse(50 * kMiB), Refusal::oom);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(rig.stats().num_ooms, 1);
  EXPECT_EQ(rig.device.calls, (DriverCalls{refused(50 * kMiB), refused(50 * kMiB)}));
}

TEST(Chain, OomLeavesLiveBlocksAlone) {
  Rig rig;
  rig.device.capacity = 40 * kMiB;
  Block* block = rig.get(20 * kMiB);
  rig.refuse(50 * kMiB);
  EXPECT_TRUE(block->allocated);
  EXPECT_EQ(rig.stats().allocated_bytes.all().current, 20 * kMiB);
  EXPECT_EQ(rig.stats().allocation.all().allocated(), 1);
}

TEST(Chain, OomInAPrivatePoolSkipsTheFullRelease) {
  Rig rig;
  rig.device.capacity = 40 * kMiB;
  rig.free(rig.get(20 * kMiB));
  EXPECT_EQ(rig.allocator.malloc_in_pool(30 * kMiB, StreamId{0}, kUserPool), nullptr);
  EXPECT_EQ(rig.allocator.refusal(), Refusal::oom);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 0);
  EXPECT_EQ(rig.stats().num_ooms, 1);
}

TEST(Chain, OomInAUserPoolReleasesAllSinceTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  rig.device.capacity = 40 * kMiB;
  rig.free(rig.get(20 * kMiB));
  EXPECT_NE(rig.allocator.malloc_in_pool(30 * kMiB, StreamId{0}, kUserPool), nullptr);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
}

TEST(Chain, OomInAGraphPoolSkipsTheFullReleaseInTorch213Too) {
  Rig rig({.rules = rules_named("2.13")});
  rig.device.capacity = 40 * kMiB;
  rig.free(rig.get(20 * kMiB));
  EXPECT_EQ(rig.allocator.malloc_in_pool(30 * kMiB, StreamId{0}, kGraphPool), nullptr);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
}

// --- use_on_oom pools ----------------------------------------------------------------------------------------------

// 20 MiB free in a pool that opted in, 20 MiB free in the default pool, nothing left on the card; 30 MiB are free for
// nobody. The request is for 18 MiB, on a stream whose default blocks do not serve.
struct UseOnOomRig {
  Rig rig;
  uint64_t pool_address;
  explicit UseOnOomRig(std::string_view rules, PoolId pool = kUserPool) : rig({.rules = rules_named(rules)}) {
    rig.device.capacity = 40 * kMiB;
    Block* block = rig.get_in(pool, 20 * kMiB);
    pool_address = block->address;
    rig.free(block);
    rig.free(rig.get(20 * kMiB, 7));
    rig.allocator.private_pool(pool).use_on_oom = true;
    rig.device.calls.clear();
  }
};

TEST(UseOnOom, PoolServesBeforeAnythingIsReleased) {
  UseOnOomRig rig("2.11");
  EXPECT_EQ(rig.rig.get(18 * kMiB)->address, rig.pool_address);
  EXPECT_EQ(rig.rig.device.calls, (DriverCalls{refused(18 * kMiB)}));
}

TEST(UseOnOom, PoolIsTheLastResortInTorch29) {
  UseOnOomRig rig("2.9");
  EXPECT_NE(rig.rig.get(18 * kMiB)->address, rig.pool_address);
  EXPECT_EQ(rig.rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(rig.rig.get(20 * kMiB)->address, rig.pool_address);
  EXPECT_EQ(rig.rig.stats().num_alloc_retries, 2);
}

TEST(UseOnOom, PoolNeverServesOthersUpToTorch24) {
  UseOnOomRig rig("2.4");
  rig.rig.get(18 * kMiB);
  EXPECT_EQ(rig.rig.refuse(20 * kMiB), Refusal::oom);
}

TEST(UseOnOom, ServesDefaultRequestsOnly) {
  UseOnOomRig rig("2.11");
  EXPECT_EQ(rig.rig.allocator.malloc_in_pool(18 * kMiB, StreamId{0}, kGraphPool), nullptr);
}

TEST(UseOnOom, BlockStaysWithItsPool) {
  UseOnOomRig rig("2.11");
  Block* block = rig.rig.get(18 * kMiB);
  EXPECT_EQ(block->segment->pool->owner, &rig.rig.allocator.private_pool(kUserPool));
}

// --- refusals ------------------------------------------------------------------------------------------------------

TEST(Refusals, ZeroBytesAreNoRequest) {
  Rig rig;
  EXPECT_EQ(rig.refuse(0), Refusal::zero);
  EXPECT_EQ(rig.stats().allocation.all().allocated(), 0);
  EXPECT_EQ(rig.stats().num_ooms, 0);
  EXPECT_EQ(rig.device.calls, DriverCalls{});
}

TEST(Refusals, ZeroBytesDoNotPollEvents) {
  Rig rig;
  Block* block = rig.get(5 * kMiB);
  rig.allocator.record_stream(block, StreamId{1});
  rig.free(block);
  rig.device.finish_event(0);
  rig.refuse(0);
  EXPECT_EQ(rig.stats().active.all().current, 1);
}

TEST(Refusals, HugeRequestIsRefusedBeforeAnythingElse) {
  Rig rig;
  EXPECT_EQ(rig.refuse(int64_t{1} << 60), Refusal::too_large);
  EXPECT_EQ(rig.stats().num_ooms, 0);
  EXPECT_EQ(rig.device.calls, DriverCalls{});
}

TEST(Refusals, JustBelowHugeIsAnOom) {
  Rig rig;
  EXPECT_EQ(rig.refuse((int64_t{1} << 60) - 1), Refusal::oom);
}

TEST(Refusals, SuccessClearsTheLastRefusal) {
  Rig rig;
  rig.refuse(0);
  rig.get(1);
  EXPECT_EQ(rig.allocator.refusal(), Refusal::none);
}

AllocatorSettings half_the_card() { return {.per_process_memory_fraction = 0.5, .throw_on_cudamalloc_oom = true}; }

TEST(Preemption, RefusesAboveTheConfiguredFraction) {
  Rig rig({.settings = half_the_card(), .rules = rules_named("2.12"), .total = 80 * kMiB});
  rig.get(20 * kMiB);
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.refuse(12 * kMiB), Refusal::preempted);
  EXPECT_EQ(rig.stats().num_oom_rejections, 1);
  EXPECT_EQ(rig.stats().num_ooms, 0);
}

TEST(Preemption, SkipsAllFurtherAttempts) {
  Rig rig({.settings = half_the_card(), .rules = rules_named("2.12"), .total = 80 * kMiB});
  rig.free(rig.get(20 * kMiB));
  EXPECT_EQ(rig.refuse(30 * kMiB), Refusal::preempted);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
}

TEST(Preemption, IsUnknownUpToTorch211) {
  Rig rig({.settings = half_the_card(), .total = 80 * kMiB});
  rig.get(60 * kMiB);
  EXPECT_EQ(rig.stats().num_oom_rejections, 0);
}

TEST(Preemption, IsOffUnlessAskedFor) {
  AllocatorSettings settings = half_the_card();
  settings.throw_on_cudamalloc_oom = false;
  Rig rig({.settings = settings, .rules = rules_named("2.12"), .total = 80 * kMiB});
  rig.get(60 * kMiB);
  EXPECT_EQ(rig.stats().num_oom_rejections, 0);
}

// --- settings that change ------------------------------------------------------------------------------------------

TEST(ChangedSettings, HoldForTheNextRequest) {
  Rig rig;
  Block* block = rig.get(5 * kMiB + 1);
  EXPECT_EQ(block->size, 5 * kMiB + 512);
  AllocatorSettings settings;
  settings.roundup_power2_divisions.fill(4);
  rig.allocator.set_settings(settings);
  EXPECT_EQ(rig.get(5 * kMiB + 1)->size, 6 * kMiB);
  EXPECT_EQ(block->size, 5 * kMiB + 512);
}

// A block that was freed while collection was off is not taken for an old one.
TEST(ChangedSettings, AgesAreCountedFromTheFree) {
  AllocatorSettings collecting;
  collecting.garbage_collection_threshold = 0.5;
  Rig rig({.settings = collecting, .limit = 100 * kMiB});
  Block* late = rig.get(20 * kMiB);
  rig.free(late);
  rig.get(20 * kMiB);  // the same block
  Block* early = rig.get(24 * kMiB);
  const uint64_t early_address = early->address;
  rig.free(early);
  rig.get(28 * kMiB);
  rig.allocator.set_settings({});
  rig.free(late);  // younger than what was freed before it
  rig.device.calls.clear();
  rig.allocator.set_settings(collecting);
  rig.get(40 * kMiB);
  EXPECT_EQ(rig.device.calls[0], released(early_address, 24 * kMiB));
}

TEST(ChangedSettings, OrdinaryBlocksServeWhenExpandableSegmentsComeOn) {
  Rig rig;
  rig.free(rig.get(5 * kMiB));
  AllocatorSettings settings;
  settings.expandable_segments = true;
  rig.allocator.set_settings(settings);
  EXPECT_EQ(rig.get(5 * kMiB)->address, FakeDevice::kFirst);
  EXPECT_GE(rig.get(20 * kMiB)->address, FakeDevice::kFirstRange);
}

}  // namespace
}  // namespace oomscope
