// Segments blamed for a difference become pools of their own.
#include "replay/pool_guess.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "replay/verify.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;
constexpr uint64_t kC = 0x7f0080000000;

Timeline timeline_of(const Snapshot& snapshot) {
  return build_timeline(snapshot, 0, {.round = [](int64_t bytes) { return bytes; }});
}

Difference at(uint32_t event, uint64_t engine_address = 0) {
  return {.event = event, .what = "", .hint = LimitHint::none, .engine_address = engine_address};
}

constexpr int64_t kLargePage = 20 * kMiB;

std::vector<bool> empties_of(const Snapshot& snapshot) {
  return stacks_that_call(snapshot, [](std::string_view function) { return function == "empty_cache"; });
}

// Takes the likeliest way to explain it; false if there is none.
bool learn(PoolGuess& guess, const Difference& difference) {
  const std::vector<PoolGuess::Way> ways = guess.ways_to_explain(difference);
  if (!ways.empty()) guess.take(ways[0]);
  return !ways.empty();
}

// A recording with all that a guess about it refers to.
struct Guessed {
  explicit Guessed(SnapshotBuilder builder)
      : snapshot(builder.build()), timeline(timeline_of(snapshot)), empties(empties_of(snapshot)) {}

  Snapshot snapshot;
  Timeline timeline;
  std::vector<bool> empties;
  PoolGuess guess{timeline, kLargePage, empties};
};

// Segments A and B released together, C later.
SnapshotBuilder three_segments() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).segment_alloc(kB, 20 * kMiB).segment_alloc(kC, 20 * kMiB);
  b.free(kA, 5 * kMiB).segment_free(kA, 20 * kMiB).segment_free(kB, 20 * kMiB);
  b.alloc(kC, 5 * kMiB).free(kC, 5 * kMiB).segment_free(kC, 20 * kMiB);
  return b;
}

TEST(PoolGuess, BlamesTheSegmentOfTheRecordedAddressAndWhatWentWithIt) {
  const Snapshot snapshot = three_segments().build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess guess(timeline, kLargePage, empties);
  ASSERT_TRUE(learn(guess, at(1)));
  ASSERT_EQ(guess.spans().size(), 2u);
  EXPECT_EQ(guess.spans()[0].address, kA);
  EXPECT_EQ(guess.spans()[0].begin, 0u);
  EXPECT_EQ(guess.spans()[0].end, 6u);
  EXPECT_EQ(guess.spans()[1].address, kB);
  EXPECT_EQ(guess.spans()[0].pool, guess.spans()[1].pool);
}

TEST(PoolGuess, BlamesNoSegmentTwice) {
  const Snapshot snapshot = three_segments().build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess guess(timeline, kLargePage, empties);
  EXPECT_TRUE(learn(guess, at(1)));
  EXPECT_FALSE(learn(guess, at(1)));
}

TEST(PoolGuess, BlamesWhereTheEngineWentElse) {
  const Snapshot snapshot = three_segments().build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess guess(timeline, kLargePage, empties);
  EXPECT_TRUE(learn(guess, at(1)));
  ASSERT_TRUE(learn(guess, at(4, kC)));
  EXPECT_EQ(guess.spans().back().address, kC);
  EXPECT_NE(guess.spans().back().pool, guess.spans().front().pool);
}

TEST(PoolGuess, OfEmptyCacheBlamesOneSegmentAlone) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).segment_alloc(kB, 20 * kMiB).free(kA, 5 * kMiB);
  b.called_from("empty_cache").segment_free(kA, 20 * kMiB).segment_free(kB, 20 * kMiB);
  const Snapshot snapshot = b.build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess guess(timeline, kLargePage, empties);
  EXPECT_TRUE(learn(guess, at(1)));
  EXPECT_EQ(guess.spans().size(), 1u);
}

TEST(PoolGuess, SegmentOfTheStartIsThereFromTheFirstEvent) {
  SnapshotBuilder b;
  b.alloc(kA, 5 * kMiB).free(kA, 5 * kMiB).segment_free(kA, 20 * kMiB);
  const Snapshot snapshot = b.build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess guess(timeline, kLargePage, empties);
  ASSERT_TRUE(learn(guess, at(0)));
  EXPECT_EQ(guess.spans()[0].begin, 0u);
}

TEST(PoolGuess, HasNothingToGuessWhereEventsNameTheirPool) {
  SnapshotBuilder b;
  b.pools_recorded().segment_alloc(kA, 20 * kMiB).segment_free(kA, 20 * kMiB);
  const Snapshot snapshot = b.build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess guess(timeline, kLargePage, empties);
  EXPECT_FALSE(learn(guess, at(0)));
}

// A range that was unmapped whole, between others of the same stream: a pool has one for each stream and size.
TEST(PoolGuess, GivesARangeToAPoolThatHasNoneOfItsKind) {
  constexpr uint64_t kRange = 0x300000000;
  constexpr uint64_t kApart = uint64_t{150} << 30;
  SnapshotBuilder b;
  const auto live_range = [&](int number, bool is_small, PoolId pool) {
    const int64_t page = is_small ? 2 * kMiB : kLargePage;
    b.segment_map(kRange + number * kApart, page);
    b.segment(kRange + number * kApart, {live_block(page)}, {.expandable = true, .pool = pool});
  };
  live_range(0, false, {});
  live_range(1, true, {0, 1});   // has a small one
  live_range(2, false, {0, 2});  // has none
  b.segment_map(kRange + 3 * kApart, 2 * kMiB).segment_unmap(kRange + 3 * kApart, 2 * kMiB);
  Guessed guessed(std::move(b));
  PoolGuess& guess = guessed.guess;
  const std::vector<PoolGuess::Way> ways = guess.ways_to_explain(at(3));
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_EQ(ways[0].pool, (PoolId{0, 2}));
  EXPECT_GT(ways[1].pool.second, uint64_t{1} << 40);  // one of its own
  guess.take(ways[0]);
  ASSERT_EQ(guess.spans().size(), 1u);
  EXPECT_EQ(guess.spans()[0].begin, 3u);
  EXPECT_EQ(guess.spans()[0].end, 4u);
  EXPECT_TRUE(guess.ways_to_explain(at(3)).empty());
}

TEST(PoolGuess, ASegmentMayBeOfAPoolThatIsStillThere) {
  SnapshotBuilder b = three_segments();
  b.segment_alloc(kA, 2 * kMiB).segment(kA, {live_block(2 * kMiB)}, {.pool = {0, 9}});
  Guessed guessed(std::move(b));
  PoolGuess& guess = guessed.guess;
  const std::vector<PoolGuess::Way> ways = guess.ways_to_explain(at(1));
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_EQ(ways[1].pool, (PoolId{0, 9}));
  EXPECT_EQ(ways[1].holdings.size(), 2u);  // what was released in one breath
}

TEST(PoolGuess, WhatWasTakenIsTheSameInAnyOrder) {
  const Snapshot snapshot = three_segments().build();
  const Timeline timeline = timeline_of(snapshot);
  const std::vector<bool> empties = empties_of(snapshot);
  PoolGuess one(timeline, kLargePage, empties);
  PoolGuess other = one;
  const PoolGuess::Way first{.holdings = {0}, .pool = {0, 1}};
  const PoolGuess::Way second{.holdings = {2}, .pool = {0, 2}};
  one.take(first);
  one.take(second);
  other.take(second);
  EXPECT_NE(one.assignment(), other.assignment());
  other.take(first);
  EXPECT_EQ(one.assignment(), other.assignment());
}

// A is free and not reused: as if it were of a pool. With `strays`, blocks of C then leave gaps that nothing explains.
SnapshotBuilder one_pool_that_went(bool strays) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).free(kA, 5 * kMiB);
  b.segment_alloc(kC, 20 * kMiB).alloc(kC, 5 * kMiB).segment_free(kA, 20 * kMiB);
  if (!strays) return std::move(b.segment(kC, {live_block(5 * kMiB), {.size = 15 * kMiB}}));
  b.alloc(kC + 7 * kMiB, 2 * kMiB).alloc(kC + 11 * kMiB, 2 * kMiB).alloc(kC + 15 * kMiB, 2 * kMiB);
  return std::move(b.segment(kC, {live_block(5 * kMiB),
                                  {.size = 2 * kMiB},
                                  live_block(2 * kMiB),
                                  {.size = 2 * kMiB},
                                  live_block(2 * kMiB),
                                  {.size = 2 * kMiB},
                                  live_block(2 * kMiB),
                                  {.size = 3 * kMiB}}));
}

size_t count_pools(const Verification& verification) {
  return static_cast<size_t>(std::count_if(verification.timeline.pools.begin(), verification.timeline.pools.end(),
                                           [](const PoolId& pool) { return !pool.is_default(); }));
}

TEST(GuessedPool, IsKeptWhereItExplainsAll) {
  const Snapshot snapshot = one_pool_that_went(false).build();
  const std::unique_ptr<Verification> found = verify(snapshot, 0);
  EXPECT_TRUE(found->exact());
  EXPECT_EQ(count_pools(*found), 1u);
}

TEST(GuessedPool, IsDroppedWhereItOnlyGetsFurther) {
  const Snapshot snapshot = one_pool_that_went(true).build();
  const std::unique_ptr<Verification> found = verify(snapshot, 0);
  EXPECT_FALSE(found->exact());
  EXPECT_EQ(count_pools(*found), 0u);
}

TEST(GuessedPool, OfMemoryAtTheStartReachesTheStartState) {
  SnapshotBuilder b;
  b.alloc(kA, 5 * kMiB).free(kA, 5 * kMiB).segment_free(kA, 20 * kMiB);
  const Snapshot snapshot = b.build();
  const PoolId pool{.first = 0, .second = 77};
  const Timeline timeline =
      build_timeline(snapshot, 0,
                     {.round = [](int64_t bytes) { return bytes; },
                      .pool_spans = {{.address = kA, .size = 20 * kMiB, .begin = 0, .end = 3, .pool = pool}}});
  ASSERT_EQ(timeline.start.size(), 1u);
  EXPECT_EQ(timeline.pools[timeline.start[0].pool_index], pool);
  EXPECT_EQ(timeline.pools[timeline.allocations[0].pool_index], pool);
}

}  // namespace
}  // namespace oomscope
