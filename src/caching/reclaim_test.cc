// Garbage collection, release_available, empty_cache.
#include <gtest/gtest.h>

#include "support/allocator_rig.h"

namespace oomscope {
namespace {

constexpr uint64_t kFirst = FakeDevice::kFirst;
constexpr PoolId kUserPool{.first = 0, .second = 1};
constexpr PoolId kOtherPool{.first = 0, .second = 2};

constexpr uint64_t segment(uint64_t number) { return kFirst + number * FakeDevice::kApart; }

AllocatorSettings split_at(int64_t max_split_mib) { return {.max_split_size_bytes = max_split_mib * kMiB}; }

// --- garbage collection --------------------------------------------------------------------------------------------

// Collection at half of `limit_mib`.
RigOptions collecting(int64_t limit_mib) {
  return {.settings = {.garbage_collection_threshold = 0.5}, .limit = limit_mib * kMiB, .total = 1000 * kMiB};
}

DriverCalls releases_of(const Rig& rig) {
  DriverCalls releases;
  for (const DriverCall& call : rig.device.calls) {
    if (call.kind == DriverCallKind::release) releases.push_back(call);
  }
  return releases;
}

TEST(Collection, FreesAnIdleSegmentBeforeTheDriverIsAsked) {
  Rig rig(collecting(100));
  Block* a = rig.get(20 * kMiB);
  rig.get(20 * kMiB);
  rig.get(20 * kMiB);
  rig.free(a);
  rig.device.calls.clear();
  rig.get(30 * kMiB);
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(segment(0), 20 * kMiB), allocated(segment(3), 30 * kMiB)}));
}

TEST(Collection, LeavesAllAloneUpToTheThreshold) {
  Rig rig(collecting(120));
  Block* a = rig.get(20 * kMiB);
  rig.get(20 * kMiB);
  rig.get(20 * kMiB);
  rig.free(a);
  rig.get(30 * kMiB);
  EXPECT_EQ(releases_of(rig), DriverCalls{});
}

TEST(Collection, IsOffWithoutALimit) {
  Rig rig({.settings = {.garbage_collection_threshold = 0.01}, .total = 100 * kMiB});
  rig.free(rig.get(20 * kMiB));
  rig.get(30 * kMiB);
  EXPECT_EQ(releases_of(rig), DriverCalls{});
}

TEST(Collection, IsOffUnderALimitOfTheWholeCard) {
  Rig rig({.settings = {.garbage_collection_threshold = 0.1}, .limit = 100 * kMiB, .total = 100 * kMiB});
  rig.free(rig.get(20 * kMiB));
  rig.get(30 * kMiB);
  EXPECT_EQ(releases_of(rig), DriverCalls{});
}

TEST(Collection, IsOnUnderALimitOfTheWholeCardUpToTorch29) {
  Rig rig({.settings = {.garbage_collection_threshold = 0.1},
           .rules = rules_named("2.9"),
           .limit = 100 * kMiB,
           .total = 100 * kMiB});
  rig.free(rig.get(20 * kMiB));
  rig.get(30 * kMiB);
  EXPECT_EQ(releases_of(rig), (DriverCalls{released(segment(0), 20 * kMiB)}));
}

// Five segments; one is free for two searches of the pool, another for one. 20 MiB are to be reclaimed.
TEST(Collection, FreesWhatIsAtLeastAsOldAsTheMean) {
  Rig rig(collecting(200));
  Block* a = rig.get(20 * kMiB);
  Block* b = rig.get(20 * kMiB);
  for (int i = 0; i < 3; ++i) rig.get(20 * kMiB);
  rig.free(a);
  rig.get(2 * kMiB, 1);  // another stream, the same pool: the clock goes on; 120 MiB are reserved now
  rig.free(b);
  rig.get(30 * kMiB);  // ages 2 and 1, mean 1.5
  EXPECT_EQ(releases_of(rig), (DriverCalls{released(segment(0), 20 * kMiB)}));
}

TEST(Collection, PassGoesOnWhenTheTargetIsMet) {
  Rig rig(collecting(180));
  Block* a = rig.get(20 * kMiB);
  Block* b = rig.get(20 * kMiB);
  for (int i = 0; i < 3; ++i) rig.get(20 * kMiB);
  rig.free(a);
  rig.free(b);
  rig.get(30 * kMiB);  // 10 MiB to reclaim, two blocks of the same age
  EXPECT_EQ(releases_of(rig), (DriverCalls{released(segment(0), 20 * kMiB), released(segment(1), 20 * kMiB)}));
}

// Five segments under a limit of 200 MiB, then one of another stream; a is free for three searches, b for one.
void free_three_and_one_searches_ago(Rig& rig) {
  Block* a = rig.get(20 * kMiB);
  Block* b = rig.get(20 * kMiB);
  for (int i = 0; i < 3; ++i) rig.get(20 * kMiB);
  rig.free(a);
  rig.get(2 * kMiB, 1);
  rig.get(2 * kMiB, 1);
  rig.free(b);
  ASSERT_EQ(rig.reserved(), 120 * kMiB);
}

TEST(Collection, EndsWithThePassThatMeetsTheTarget) {
  Rig rig(collecting(200));
  free_three_and_one_searches_ago(rig);
  rig.get(30 * kMiB);  // 20 MiB to reclaim
  EXPECT_EQ(releases_of(rig), (DriverCalls{released(segment(0), 20 * kMiB)}));
}

TEST(Collection, NextPassHasANewMean) {
  Rig rig(collecting(200));
  free_three_and_one_searches_ago(rig);
  rig.allocator.set_memory_limit(190 * kMiB);
  rig.get(30 * kMiB);  // 25 MiB to reclaim: the first pass frees a (3 >= 2), the second b (1 >= 1)
  EXPECT_EQ(releases_of(rig), (DriverCalls{released(segment(0), 20 * kMiB), released(segment(1), 20 * kMiB)}));
}

TEST(Collection, AgeStartsAnewWhenABlockIsFreedAgain) {
  Rig rig(collecting(200));
  Block* a = rig.get(20 * kMiB);
  Block* b = rig.get(22 * kMiB);
  for (int i = 0; i < 3; ++i) rig.get(20 * kMiB);
  rig.free(a);
  rig.free(b);
  rig.free(rig.get(20 * kMiB));  // takes a and gives it back: a is one search younger now
  rig.get(30 * kMiB);
  EXPECT_EQ(releases_of(rig), (DriverCalls{released(segment(1), 22 * kMiB)}));
}

TEST(Collection, SplitSegmentsStay) {
  Rig rig(collecting(60));
  rig.get(20 * kMiB);
  Block* a = rig.get(5 * kMiB);
  rig.get(5 * kMiB);
  rig.free(a);
  rig.get(20 * kMiB);
  EXPECT_EQ(releases_of(rig), DriverCalls{});
}

TEST(Collection, SmallSegmentsStay) {
  Rig rig(collecting(60));
  rig.free(rig.get(512));
  rig.get(32 * kMiB);
  rig.get(20 * kMiB);
  EXPECT_EQ(releases_of(rig), DriverCalls{});
}

TEST(Collection, PrivatePoolsStay) {
  Rig rig(collecting(60));
  rig.free(rig.get_in(kUserPool, 32 * kMiB));
  rig.get(20 * kMiB);
  EXPECT_EQ(releases_of(rig), DriverCalls{});
}

// A card of 16 MiB has ranges of one page of 20 MiB, so an expandable segment can be one free block.
RigOptions one_page_ranges(std::string_view rules) {
  return {.settings = {.garbage_collection_threshold = 0.5, .expandable_segments = true},
          .rules = rules_named(rules),
          .limit = 15 * kMiB,
          .total = 16 * kMiB};
}

TEST(Collection, SkipsExpandableSegments) {
  Rig rig(one_page_ranges("2.11"));
  rig.free(rig.get(12 * kMiB));
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  rig.get(14 * kMiB, 1);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);  // the full release did it, not collection
}

TEST(Collection, OfAnExpandableSegmentIsAnAssertionUpToTorch24) {
  Rig rig(one_page_ranges("2.4"));
  rig.free(rig.get(12 * kMiB));
  EXPECT_EQ(rig.refuse(14 * kMiB, 1), Refusal::impossible);
}

// The assertion ends the request although the limit would allow it.
TEST(Collection, AssertionComesBeforeTheDriverIsAsked) {
  RigOptions options = one_page_ranges("2.4");
  options.settings.garbage_collection_threshold = 0.25;
  options.limit = 40 * kMiB;
  Rig rig(options);
  rig.free(rig.get(12 * kMiB));
  EXPECT_EQ(rig.refuse(14 * kMiB, 1), Refusal::impossible);
}

TEST(Collection, WouldRunSaysWhetherMoreThanTheThresholdIsReserved) {
  Rig rig(collecting(80));
  rig.get(40 * kMiB);
  EXPECT_FALSE(rig.allocator.gc_would_run());
  rig.get(12 * kMiB);
  EXPECT_TRUE(rig.allocator.gc_would_run());
}

// --- release_available ---------------------------------------------------------------------------------------------

TEST(ReleaseAvailable, IsOffWithoutMaxSplitSize) {
  Rig rig;
  rig.device.capacity = 60 * kMiB;
  rig.free(rig.get(60 * kMiB, 1));
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
}

TEST(ReleaseAvailable, FreesTheSmallestSegmentThatIsLargeEnough) {
  Rig rig({.settings = split_at(40)});
  rig.device.capacity = 120 * kMiB;
  Block* small = rig.get(50 * kMiB);
  Block* large = rig.get(70 * kMiB);
  rig.free(small);
  rig.free(large);
  rig.device.calls.clear();
  rig.get(20 * kMiB);  // below max_split_size: neither serves; max_split_size itself is what must be freed
  EXPECT_EQ(rig.device.calls,
            (DriverCalls{refused(20 * kMiB), released(segment(0), 50 * kMiB), allocated(segment(2), 20 * kMiB)}));
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
}

TEST(ReleaseAvailable, FreesABlockThatWasTooLargeToServe) {
  Rig rig({.settings = split_at(40)});
  rig.device.capacity = 70 * kMiB;
  rig.free(rig.get(70 * kMiB));
  rig.get(45 * kMiB);
  EXPECT_EQ(rig.stats().num_device_free, 1);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
}

TEST(ReleaseAvailable, FreesTheLargestOnesUntilTheirSumIsEnough) {
  Rig rig({.settings = split_at(40)});
  rig.device.capacity = 160 * kMiB;
  Block* a = rig.get(44 * kMiB);
  Block* b = rig.get(50 * kMiB);
  Block* c = rig.get(60 * kMiB);
  for (Block* block : {a, b, c}) rig.free(block);
  rig.device.calls.clear();
  rig.get(100 * kMiB);
  EXPECT_EQ(rig.device.calls, (DriverCalls{refused(100 * kMiB), released(segment(2), 60 * kMiB),
                                           released(segment(1), 50 * kMiB), allocated(segment(3), 100 * kMiB)}));
}

TEST(ReleaseAvailable, WhatItFreedStaysFreedWhenItWasNotEnough) {
  Rig rig({.settings = split_at(40)});
  rig.device.capacity = 100 * kMiB;
  rig.free(rig.get_in(kUserPool, 50 * kMiB));
  Block* small = rig.get_in(kUserPool, 30 * kMiB);
  rig.free(small);
  EXPECT_EQ(rig.allocator.malloc_in_pool(90 * kMiB, StreamId{0}, kUserPool), nullptr);
  EXPECT_EQ(rig.reserved(), 30 * kMiB);  // below max_split_size: not touched
}

TEST(ReleaseAvailable, LeavesOtherStreamsAlone) {
  Rig rig({.settings = split_at(40)});
  rig.device.capacity = 60 * kMiB;
  rig.free(rig.get_in(kUserPool, 50 * kMiB, 1));
  EXPECT_EQ(rig.allocator.malloc_in_pool(20 * kMiB, StreamId{0}, kUserPool), nullptr);
  EXPECT_EQ(rig.reserved(), 50 * kMiB);
}

TEST(ReleaseAvailable, LeavesOtherPoolsAlone) {
  Rig rig({.settings = split_at(40)});
  rig.device.capacity = 60 * kMiB;
  rig.free(rig.get_in(kOtherPool, 50 * kMiB));
  EXPECT_EQ(rig.allocator.malloc_in_pool(20 * kMiB, StreamId{0}, kUserPool), nullptr);
  EXPECT_EQ(rig.reserved(), 50 * kMiB);
}

// 60 MiB of pages are free, which is too large for 20 MiB under max_split_size_mb:40; the limit refuses more.
RigOptions oversize_pages(std::string_view rules) {
  AllocatorSettings settings = split_at(40);
  settings.expandable_segments = true;
  return {.settings = settings, .rules = rules_named(rules), .limit = 70 * kMiB, .total = 128 * kMiB};
}

TEST(ReleaseAvailable, SkipsExpandableSegments) {
  Rig rig(oversize_pages("2.11"));
  rig.free(rig.get(60 * kMiB));
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(rig.stats().segment.all().freed, 0);
}

TEST(ReleaseAvailable, OfAnExpandableSegmentIsAnAssertionUpToTorch24) {
  Rig rig(oversize_pages("2.4"));
  rig.free(rig.get(60 * kMiB));
  EXPECT_EQ(rig.refuse(20 * kMiB), Refusal::impossible);
}

TEST(ReleaseAvailable, OfSeveralExpandableBlocksIsAnAssertionUpToTorch24) {
  Rig rig(oversize_pages("2.4"));
  rig.free(rig.get(60 * kMiB));
  EXPECT_EQ(rig.refuse(65 * kMiB), Refusal::impossible);  // none is large enough; the walk meets the 60 MiB
}

// --- empty_cache ---------------------------------------------------------------------------------------------------

TEST(EmptyCache, FreesLargeSegmentsBeforeSmallOnes) {
  Rig rig;
  rig.free(rig.get(512));
  rig.free(rig.get(20 * kMiB));
  rig.device.calls.clear();
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(segment(1), 20 * kMiB), released(segment(0), 2 * kMiB)}));
  EXPECT_EQ(rig.reserved(), 0);
}

TEST(EmptyCache, GoesByStreamThenSizeThenAddress) {
  Rig rig;
  Block* a = rig.get(30 * kMiB, 5);
  Block* b = rig.get(40 * kMiB, 1);
  Block* c = rig.get(20 * kMiB, 1);
  Block* d = rig.get(20 * kMiB, 1);
  for (Block* block : {d, c, b, a}) rig.free(block);
  rig.device.calls.clear();
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(segment(2), 20 * kMiB), released(segment(3), 20 * kMiB),
                                           released(segment(1), 40 * kMiB), released(segment(0), 30 * kMiB)}));
}

TEST(EmptyCache, StreamsGoByHandleAsUnsignedNumbers) {
  Rig rig;
  rig.free(rig.get(20 * kMiB, ~uint64_t{0}));
  rig.free(rig.get(20 * kMiB, 1));
  rig.device.calls.clear();
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(segment(1), 20 * kMiB), released(segment(0), 20 * kMiB)}));
}

TEST(EmptyCache, LeavesSplitSegments) {
  Rig rig;
  rig.get(5 * kMiB);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(EmptyCache, CountsOneSynchronisation) {
  Rig rig;
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().num_sync_all_streams, 1);
  EXPECT_EQ(rig.stats().num_device_free, 0);
}

TEST(EmptyCache, WaitsForPendingBlocks) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.record_stream(block, StreamId{1});
  rig.free(block);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.waited_events, (std::vector<uint64_t>{0}));
  EXPECT_EQ(rig.reserved(), 0);
}

TEST(EmptyCache, CompletesHeldBlocks) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.free_held(block);
  EXPECT_EQ(rig.allocator.held_count(), 1u);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0);
  EXPECT_EQ(rig.allocator.held_count(), 0u);
}

TEST(EmptyCache, LeavesPrivatePoolsThatAreInUse) {
  Rig rig;
  rig.free(rig.get_in(kUserPool, 20 * kMiB));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(EmptyCache, FreesFreeablePoolsSmallBeforeLarge) {
  Rig rig;
  rig.free(rig.get_in(kUserPool, 20 * kMiB));
  rig.free(rig.get_in(kUserPool, 512));
  rig.allocator.release_pool(kUserPool);
  rig.device.calls.clear();
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(segment(1), 2 * kMiB), released(segment(0), 20 * kMiB)}));
}

TEST(EmptyCache, SkipsTheDefaultPoolWhileAScopeIsOpen) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  ASSERT_TRUE(rig.allocator.begin_allocate_to_pool(kUserPool, std::nullopt, false));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 0);
}

TEST(EmptyCache, IgnoresAnOpenUserScopeSinceTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  rig.free(rig.get(20 * kMiB));
  ASSERT_TRUE(rig.allocator.begin_allocate_to_pool(kUserPool, std::nullopt, false));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0);
}

TEST(EmptyCache, SkipsTheDefaultPoolDuringACaptureInTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  rig.free(rig.get(20 * kMiB));
  ASSERT_TRUE(rig.allocator.begin_allocate_to_pool({.first = 1, .second = 0}, std::nullopt, true));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(EmptyPool, FreesThatPoolAlone) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  for (PoolId pool : {kUserPool, kOtherPool}) {
    rig.free(rig.get_in(pool, 20 * kMiB));
    rig.allocator.release_pool(pool);
  }
  rig.device.calls.clear();
  rig.allocator.empty_pool(kOtherPool);
  EXPECT_EQ(rig.device.calls, (DriverCalls{released(segment(2), 20 * kMiB)}));
}

TEST(EmptyPool, FreesNothingWhileThePoolIsReferenced) {
  Rig rig;
  rig.free(rig.get_in(kUserPool, 20 * kMiB));
  rig.allocator.empty_pool(kUserPool);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(EmptyPool, WaitsForItsOwnPendingBlocksAlone) {
  Rig rig;
  Block* of_default = rig.get(20 * kMiB);
  Block* of_pool = rig.get_in(kUserPool, 20 * kMiB);
  rig.allocator.release_pool(kUserPool);
  rig.allocator.free_held(of_default);
  rig.allocator.free_held(of_pool);
  rig.allocator.empty_pool(kUserPool);
  EXPECT_EQ(rig.allocator.held_count(), 1U);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(EmptyPool, DropsUseOnOom) {
  Rig rig;
  rig.get_in(kUserPool, 20 * kMiB);
  rig.allocator.private_pool(kUserPool).use_on_oom = true;
  rig.allocator.empty_pool(kUserPool);
  EXPECT_FALSE(rig.allocator.private_pool(kUserPool).use_on_oom);
}

}  // namespace
}  // namespace oomscope
