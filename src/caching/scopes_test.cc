// Private pools, scopes, and the events that guard blocks of several streams.
#include <gtest/gtest.h>

#include "support/allocator_rig.h"

namespace oomscope {
namespace {

constexpr uint64_t kFirst = FakeDevice::kFirst;
constexpr PoolId kOne{.first = 0, .second = 1};
constexpr PoolId kTwo{.first = 0, .second = 2};
constexpr PoolId kGraph{.first = 1, .second = 0};

PoolId pool_of(const Block* block) {
  const PrivatePool* owner = block->segment->pool->owner;
  return owner == nullptr ? PoolId{} : owner->id;
}

// --- scopes --------------------------------------------------------------------------------------------------------

TEST(Scopes, RouteAllocationsToTheirPool) {
  Rig rig;
  EXPECT_TRUE(rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false));
  EXPECT_EQ(pool_of(rig.get(5 * kMiB)), kOne);
  rig.allocator.end_allocate_to_pool(kOne);
  EXPECT_EQ(pool_of(rig.get(5 * kMiB)), PoolId{});
}

TEST(Scopes, WithAStreamServeThatStreamOnly) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
  EXPECT_EQ(pool_of(rig.get(5 * kMiB, 3)), kGraph);
  EXPECT_EQ(pool_of(rig.get(5 * kMiB, 4)), PoolId{});
}

TEST(Scopes, NewestDecides) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.allocator.begin_allocate_to_pool(kTwo, std::nullopt, false);
  EXPECT_EQ(pool_of(rig.get(5 * kMiB)), kTwo);
}

TEST(Scopes, OldestDecidesUpToTorch29) {
  Rig rig({.rules = rules_named("2.9")});
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.allocator.begin_allocate_to_pool(kTwo, std::nullopt, false);
  EXPECT_EQ(pool_of(rig.get(5 * kMiB)), kOne);
}

TEST(Scopes, OfAPoolCanBeOpenOnce) {
  Rig rig;
  EXPECT_TRUE(rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false));
  EXPECT_FALSE(rig.allocator.begin_allocate_to_pool(kOne, StreamId{1}, false));
}

// --- use counts ----------------------------------------------------------------------------------------------------

TEST(PrivatePools, StartWithOneReference) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  EXPECT_EQ(rig.allocator.private_pool(kOne).use_count, 1);
}

TEST(PrivatePools, LaterScopesAddAReference) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.allocator.end_allocate_to_pool(kOne);
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  EXPECT_EQ(rig.allocator.private_pool(kOne).use_count, 2);
}

TEST(PrivatePools, EndOfAScopeDropsNoReference) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.get(5 * kMiB);
  rig.allocator.end_allocate_to_pool(kOne);
  EXPECT_FALSE(rig.allocator.private_pool(kOne).freeable());
}

TEST(PrivatePools, AreFreeableWithoutReferences) {
  Rig rig;
  rig.get_in(kOne, 5 * kMiB);
  rig.allocator.release_pool(kOne);
  EXPECT_TRUE(rig.allocator.private_pool(kOne).freeable());
}

TEST(PrivatePools, CountDriverAllocations) {
  Rig rig;
  Block* large = rig.get_in(kOne, 20 * kMiB);
  rig.get_in(kOne, 512);
  EXPECT_EQ(rig.allocator.private_pool(kOne).device_allocations, 2);
  rig.free(large);
  rig.allocator.release_pool(kOne);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.allocator.private_pool(kOne).device_allocations, 1);
}

TEST(PrivatePools, EmptiedPoolBeginsAnew) {
  Rig rig;
  rig.free(rig.get_in(kOne, 20 * kMiB));
  rig.allocator.release_pool(kOne);
  rig.allocator.empty_cache();
  rig.free(rig.get_in(kOne, 20 * kMiB));
  EXPECT_FALSE(rig.allocator.private_pool(kOne).freeable());
}

TEST(PrivatePools, NeverShareBlocksWithTheDefaultPool) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  const Block* block = rig.get_in(kOne, 20 * kMiB);
  EXPECT_NE(block->address, kFirst);
}

TEST(PrivatePools, CountIntoTheSameStatistics) {
  Rig rig;
  rig.get_in(kOne, 20 * kMiB);
  EXPECT_EQ(rig.stats().reserved_bytes.large().current, 20 * kMiB);
  EXPECT_EQ(rig.stats().allocation.all().current, 1);
}

// --- record_stream and events --------------------------------------------------------------------------------------

// A block of 20 MiB that the given streams used, freed.
Block* used_and_freed(Rig& rig, const std::vector<uint64_t>& streams) {
  Block* block = rig.get(20 * kMiB);
  for (uint64_t stream : streams) rig.allocator.record_stream(block, StreamId{stream});
  rig.free(block);
  return block;
}

TEST(RecordStream, TakesEffectAtTheFree) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.record_stream(block, StreamId{1});
  EXPECT_TRUE(rig.device.events.empty());
  rig.free(block);
  EXPECT_EQ(rig.device.events.size(), 1u);
}

TEST(RecordStream, OfTheBlocksOwnStreamIsIgnored) {
  Rig rig;
  Block* block = rig.get(20 * kMiB, 5);
  rig.allocator.record_stream(block, StreamId{5});
  rig.free(block);
  EXPECT_TRUE(rig.device.events.empty());
  EXPECT_EQ(rig.stats().active.all().current, 0);
}

TEST(RecordStream, OfOneStreamTwiceIsOneEvent) {
  Rig rig;
  used_and_freed(rig, {1, 1});
  EXPECT_EQ(rig.device.events.size(), 1u);
}

TEST(PendingBlock, IsActiveButNotAllocated) {
  Rig rig;
  used_and_freed(rig, {1});
  EXPECT_EQ(rig.stats().allocation.all().current, 0);
  EXPECT_EQ(rig.stats().allocated_bytes.all().current, 0);
  EXPECT_EQ(rig.stats().active.all().current, 1);
  EXPECT_EQ(rig.stats().active_bytes.all().current, 20 * kMiB);
  EXPECT_EQ(rig.stats().requested_bytes.all().current, 20 * kMiB);
}

TEST(PendingBlock, ServesNobody) {
  Rig rig;
  used_and_freed(rig, {1});
  EXPECT_NE(rig.get(20 * kMiB)->address, kFirst);
}

TEST(PendingBlock, ComesBackAtTheNextMallocOfAnySizeAndStream) {
  Rig rig;
  used_and_freed(rig, {1});
  rig.device.finish_event(0);
  rig.get(512, 9);
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(PendingBlock, ServesTheMallocThatFoundItDone) {
  Rig rig;
  used_and_freed(rig, {1});
  rig.device.finish_event(0);
  EXPECT_EQ(rig.get(20 * kMiB)->address, kFirst);
}

TEST(PendingBlock, DoesNotComeBackAtAFree) {
  Rig rig;
  Block* other = rig.get(512);
  used_and_freed(rig, {1});
  rig.device.finish_event(0);
  rig.free(other);
  EXPECT_EQ(rig.stats().active.large().current, 1);
}

TEST(PendingBlock, WaitsForEveryStream) {
  Rig rig;
  used_and_freed(rig, {1, 2});
  rig.device.finish_event(0);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 1);
  rig.device.finish_event(1);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(EventQueue, StopsAtItsFirstUnfinishedEvent) {
  Rig rig;
  used_and_freed(rig, {1});
  used_and_freed(rig, {1});
  rig.device.finish_event(1);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 2);
}

TEST(EventQueue, OfASlowStreamDoesNotHoldTheOthers) {
  Rig rig;
  used_and_freed(rig, {1});
  used_and_freed(rig, {2});
  rig.device.finish_event(1);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 1);
}

// --- while a capture or a scope suspends ---------------------------------------------------------------------------

TEST(Suspended, EventsAreNotPolledWhileAScopeIsOpen) {
  Rig rig;
  used_and_freed(rig, {1});
  rig.device.finish_event(0);
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 1);
  rig.allocator.end_allocate_to_pool(kOne);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(Suspended, UserScopeStillPollsSinceTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  used_and_freed(rig, {1});
  rig.device.finish_event(0);
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(Suspended, CaptureDoesNotPollInTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  used_and_freed(rig, {1});
  rig.device.finish_event(0);
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 1);
}

TEST(Suspended, CaptureOfAnotherStreamDoesNotSuspendSinceTorch213) {
  for (const auto& [rules, pending] : {std::pair("2.12", 1), std::pair("2.13", 0)}) {
    Rig rig({.rules = rules_named(rules)});
    used_and_freed(rig, {1});
    rig.device.finish_event(0);
    rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
    rig.get(512, 4);
    EXPECT_EQ(rig.stats().active.large().current, pending) << rules;
  }
}

TEST(Suspended, FreeBesideTheCaptureOfAnotherStreamIsNotDeferredSinceTorch213) {
  for (const auto& [rules, events] : {std::pair("2.12", 0u), std::pair("2.13", 1u)}) {
    Rig rig({.rules = rules_named(rules)});
    rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
    used_and_freed(rig, {1});
    EXPECT_EQ(rig.device.events.size(), events) << rules;
  }
}

TEST(Suspended, RefusedRequestBesideACaptureReleasesEverythingSinceTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  rig.device.capacity = 40 * kMiB;
  rig.free(rig.get(20 * kMiB));
  rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
  EXPECT_NE(rig.get(30 * kMiB, 4), nullptr);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
}

TEST(Suspended, EmptyCacheSkipsTheDefaultPool) {
  Rig rig;
  rig.free(rig.get(20 * kMiB));
  rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.allocator.refusal(), Refusal::none);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
}

TEST(Suspended, EmptyCacheOnAnotherStreamReleasesSinceTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  rig.free(rig.get(20 * kMiB));
  rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
  rig.allocator.empty_cache(StreamId{3});
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  rig.allocator.empty_cache(StreamId{4});
  EXPECT_EQ(rig.reserved(), 0);
}

// TORCH_INTERNAL_ASSERT(captures_underway.empty()) in synchronize_and_free_events, torch 2.1 to 2.4.
TEST(Suspended, EmptyCacheIsAnAssertionUpToTorch24) {
  Rig rig({.rules = rules_named("2.4")});
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  rig.free(rig.get(20 * kMiB));
  rig.allocator.release_pool(kOne);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.allocator.refusal(), Refusal::impossible);
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  rig.allocator.end_allocate_to_pool(kOne);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.allocator.refusal(), Refusal::none);
  EXPECT_EQ(rig.reserved(), 0);
}

TEST(Suspended, FreeIsDeferredUntilTheEnd) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.record_stream(block, StreamId{1});
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  rig.free(block);
  EXPECT_TRUE(rig.device.events.empty());
  EXPECT_EQ(rig.stats().active.large().current, 1);
  rig.allocator.end_allocate_to_pool(kGraph);
  rig.get(512);  // records the event only now
  EXPECT_EQ(rig.device.events.size(), 1u);
  EXPECT_EQ(rig.stats().active.large().current, 1);
  rig.device.finish_event(0);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(Suspended, UseInsideIsOverWithTheEnd) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  used_and_freed(rig, {1});
  rig.allocator.end_allocate_to_pool(kGraph);
  EXPECT_EQ(rig.stats().active.large().current, 1);
  rig.get(512);
  EXPECT_TRUE(rig.device.events.empty());
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(Suspended, UseInsideWaitsToTorch21) {
  Rig rig({.rules = rules_named("2.1")});
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  used_and_freed(rig, {1});
  rig.allocator.end_allocate_to_pool(kGraph);
  rig.get(512);
  EXPECT_EQ(rig.device.events.size(), 1u);
}

TEST(Suspended, UseBesideTheCaptureOfAnotherStreamWaitsSinceTorch213) {
  for (const auto& [current, events] : {std::pair(uint64_t{3}, 0u), std::pair(uint64_t{4}, 1u)}) {
    Rig rig({.rules = rules_named("2.13")});
    Block* block = rig.get(20 * kMiB);
    rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
    rig.allocator.record_stream(block, StreamId{1}, StreamId{current});
    rig.allocator.free(block, StreamId{3});
    rig.allocator.end_allocate_to_pool(kGraph);
    rig.get(512);
    EXPECT_EQ(rig.device.events.size(), events) << current;
  }
}

TEST(Suspended, UseBeforeWaitsThoughAnotherWasInside) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.record_stream(block, StreamId{1});
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  rig.allocator.record_stream(block, StreamId{2});
  rig.free(block);
  rig.allocator.end_allocate_to_pool(kGraph);
  rig.get(512);
  ASSERT_EQ(rig.device.events.size(), 1u);
  EXPECT_EQ(rig.device.events[0].second, StreamId{1});
}

TEST(Suspended, UseInsideOfABlockFreedOutsideWaits) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  rig.allocator.record_stream(block, StreamId{1});
  rig.allocator.end_allocate_to_pool(kGraph);
  rig.free(block);
  EXPECT_EQ(rig.device.events.size(), 1u);
}

TEST(Suspended, StreamOfTheCallerDecidesSinceTorch213) {
  for (const auto& [current, events] : {std::pair(uint64_t{3}, 0u), std::pair(uint64_t{0}, 1u)}) {
    Rig rig({.rules = rules_named("2.13")});
    Block* block = rig.get(20 * kMiB, 1);
    rig.allocator.record_stream(block, StreamId{2});
    rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
    rig.allocator.free(block, StreamId{current});
    EXPECT_EQ(rig.device.events.size(), events) << current;
  }
}

TEST(Suspended, FreeUnderAUserScopeIsNotDeferredSinceTorch213) {
  Rig rig({.rules = rules_named("2.13")});
  rig.allocator.begin_allocate_to_pool(kOne, std::nullopt, false);
  used_and_freed(rig, {1});
  EXPECT_EQ(rig.device.events.size(), 1u);
}

TEST(Suspended, BlockWithoutUsesIsReturnedAtOnce) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  rig.free(rig.get(20 * kMiB));
  EXPECT_EQ(rig.stats().active.large().current, 0);
}

TEST(Suspended, DeferredNeighbourIsNotAbsorbed) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  Block* a = rig.get(5 * kMiB);
  Block* b = rig.get(5 * kMiB);
  rig.get(10 * kMiB);
  rig.allocator.record_stream(a, StreamId{1});
  rig.free(a);
  rig.free(b);
  EXPECT_EQ(b->size, 5 * kMiB);
}

TEST(Suspended, EmptyCacheAfterTheEndFlushesDeferredBlocks) {
  Rig rig;
  rig.allocator.begin_allocate_to_pool(kGraph, std::nullopt, true);
  Block* block = rig.get(20 * kMiB);
  rig.allocator.record_stream(block, StreamId{1});
  rig.free(block);
  rig.allocator.end_allocate_to_pool(kGraph);
  rig.allocator.release_pool(kGraph);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0);
}

TEST(Suspended, RefusedRequestReleasesNothing) {
  Rig rig;
  rig.device.capacity = 40 * kMiB;
  rig.free(rig.get(20 * kMiB));
  rig.allocator.begin_allocate_to_pool(kGraph, StreamId{3}, true);
  EXPECT_EQ(rig.refuse(30 * kMiB), Refusal::oom);  // another stream: the default pool, but a scope is open
  EXPECT_EQ(rig.reserved(), 20 * kMiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
}

// --- held frees ----------------------------------------------------------------------------------------------------

TEST(HeldFree, StaysPendingUntilItIsCompleted) {
  Rig rig;
  Block* block = rig.get(20 * kMiB);
  rig.allocator.free_held(block);
  rig.get(512);
  EXPECT_EQ(rig.stats().active.large().current, 1);
  rig.allocator.complete(block);
  EXPECT_EQ(rig.stats().active.large().current, 0);
  EXPECT_EQ(rig.allocator.held_count(), 0u);
}

TEST(HeldFree, CompletesAtAFullReleaseInTheOrderOfTheFrees) {
  Rig rig;
  rig.device.capacity = 40 * kMiB;
  Block* a = rig.get(20 * kMiB);
  Block* b = rig.get(20 * kMiB);
  rig.allocator.free_held(b);
  rig.allocator.free_held(a);
  rig.get(30 * kMiB);
  EXPECT_EQ(rig.allocator.held_count(), 0u);
  EXPECT_EQ(rig.stats().num_device_free, 2);
}

// Neighbours merge in the order of completion, which the totals of inactive splits show.
TEST(HeldFree, CompletesThoseThatWerePutLastInThatOrder) {
  enum class Way { held, held_and_reordered, at_once };
  const auto inactive_splits_made = [](Way way) {
    Rig rig;
    std::array<Block*, 5> row{};
    for (Block*& block : row) block = rig.get(4 * kMiB);
    const std::array<int, 5> order =
        way == Way::at_once ? std::array<int, 5>{0, 2, 4, 1, 3} : std::array<int, 5>{0, 1, 2, 3, 4};
    for (const int i : order) {
      way == Way::at_once ? rig.free(row[i]) : rig.allocator.free_held(row[i]);
    }
    if (way == Way::held_and_reordered) {
      rig.allocator.hold_last(row[1]);
      rig.allocator.hold_last(row[3]);
    }
    rig.allocator.empty_cache();
    return rig.stats().inactive_split.all().allocated();
  };
  EXPECT_EQ(inactive_splits_made(Way::held_and_reordered), inactive_splits_made(Way::at_once));
  EXPECT_NE(inactive_splits_made(Way::held), inactive_splits_made(Way::at_once));
}

TEST(HeldFree, CompletionAfterAFullReleaseIsIgnored) {
  Rig rig;
  Block* a = rig.get(5 * kMiB);
  rig.get(5 * kMiB);
  rig.allocator.free_held(a);
  rig.allocator.empty_cache();
  rig.allocator.complete(a);
  EXPECT_EQ(rig.stats().active.all().current, 1);
}

}  // namespace
}  // namespace oomscope
