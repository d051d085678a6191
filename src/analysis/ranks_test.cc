#include "analysis/ranks.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

Design design(std::vector<uint64_t> places, std::vector<KeptBlocks> kept = {}) {
  return Design{.from_start = true,
                .paths = places,
                .large = places,
                .recurring = places,
                .kept = std::move(kept),
                .ended_early = false};
}

Rank rank(int64_t number, const Design& design, int64_t peak_bytes) {
  Rank rank{.label = "",
            .path = "",
            .node = std::nullopt,
            .rank = number,
            .says_rank = true,
            .error = std::nullopt,
            .facts = {}};
  rank.facts.events = 1000;
  rank.facts.peak_allocated_bytes = peak_bytes;
  rank.facts.sites = {{.text = "train.py:1 f", .bytes = peak_bytes, .user_code = true}};
  rank.facts.design = design;
  return rank;
}

std::vector<std::vector<size_t>> groups_of(const std::vector<Rank>& ranks) {
  std::vector<std::vector<size_t>> groups;
  for (const RankGroup& group : compare_ranks(ranks).groups) groups.push_back(group.members);
  return groups;
}

const Design kReplica = design({1, 2, 3});

TEST(Designs, OfReplicasWithMoreOrFewerPlacesAreOne) {
  EXPECT_TRUE(is_same_design(kReplica, design({1, 2, 3, 9})));
  EXPECT_TRUE(is_same_design(kReplica, design({1})));
}

TEST(Designs, WithPlacesOfTheirOwnOnBothSidesAreTwo) { EXPECT_FALSE(is_same_design(design({1, 2}), design({2, 3}))); }

TEST(Designs, ThatKeepOtherSizesAreTwo) {
  EXPECT_FALSE(is_same_design(design({1}, {{10, 1}, {11, 1}, {12, 1}}), design({1}, {{20, 1}, {21, 1}, {22, 1}})));
  EXPECT_TRUE(is_same_design(design({1}, {{10, 1}, {11, 1}, {12, 1}}), design({1}, {{10, 1}, {21, 1}, {22, 1}})));
}

TEST(Designs, OfAnotherDepthAreTwo) {
  const Design eight = design({1}, {{10, 8}, {11, 8}, {12, 16}, {13, 16}});
  Design seven = design({1}, {{10, 7}, {11, 7}, {12, 14}, {13, 14}});
  EXPECT_FALSE(is_same_design(eight, seven));
  seven.ended_early = true;  // it died while it was built
  EXPECT_TRUE(is_same_design(eight, seven));
}

TEST(Designs, ThatShareOutTheOptimizersStateAreOne) {
  EXPECT_TRUE(is_same_design(design({1}, {{10, 8}, {11, 8}, {20, 3}, {21, 3}, {30, 3}, {31, 3}}),
                             design({1}, {{10, 8}, {11, 8}, {20, 5}, {21, 5}, {30, 5}, {31, 5}})));
}

TEST(Designs, OfHistoriesFromMidLifeAreToldByWhatRecurs) {
  Design late = design({2, 3});
  late.from_start = false;
  Design other = design({1, 2});
  other.from_start = false;
  other.recurring = {2};  // place 1 was asked from once: the other history may have missed it
  EXPECT_TRUE(is_same_design(late, other));
}

TEST(Ranks, OfAPipelineAreGroupedByStage) {
  const Design first = design({1, 2});
  const Design middle = design({2});
  const Design last = design({2, 3});
  const std::vector<Rank> ranks = {rank(0, first, 10), rank(1, middle, 20), rank(2, middle, 20), rank(3, last, 90)};
  EXPECT_EQ(groups_of(ranks), (std::vector<std::vector<size_t>>{{0}, {1, 2}, {3}}));
  EXPECT_TRUE(compare_ranks(ranks).outliers.empty());
}

TEST(Ranks, OfOneDesignNameTheOddOneWithItsSites) {
  const std::vector<Rank> ranks = {rank(0, design({1, 2, 3, 9}), 1500), rank(1, kReplica, 1000),
                                   rank(2, kReplica, 1001), rank(3, kReplica, 1000)};
  const RankComparison comparison = compare_ranks(ranks);
  ASSERT_EQ(comparison.groups.size(), 1U);
  ASSERT_EQ(comparison.outliers.size(), 1U);
  EXPECT_EQ(comparison.outliers[0].rank, 0U);
  EXPECT_EQ(comparison.outliers[0].bytes, 500);
  EXPECT_EQ(comparison.outliers[0].sites.front().bytes, 500);
  EXPECT_EQ(comparison.highest_peak, 0U);
}

TEST(Ranks, ThatAllVaryHaveNoOddOne) {
  std::vector<Rank> ranks;
  for (int64_t i = 0; i < 8; ++i) ranks.push_back(rank(i, kReplica, 1000 + 50 * i));
  EXPECT_TRUE(compare_ranks(ranks).outliers.empty());
}

TEST(Ranks, ThatDiedAreNoMeasureAndNotOddForPeakingLow) {
  std::vector<Rank> ranks = {rank(0, kReplica, 1000), rank(1, kReplica, 400)};
  ranks[1].facts.failed = true;
  const RankComparison comparison = compare_ranks(ranks);
  EXPECT_TRUE(comparison.outliers.empty());
  EXPECT_EQ(comparison.first_failure, 1U);
  EXPECT_EQ(comparison.chosen, 1U);
}

TEST(FirstFailure, IsTheEarliestByTheClock) {
  std::vector<Rank> ranks = {rank(0, kReplica, 1000), rank(1, kReplica, 900), rank(2, kReplica, 800)};
  for (Rank& each : ranks) each.facts.failed = true;
  ranks[0].facts.failed_at_us = 30;
  ranks[1].facts.failed_at_us = 10;
  ranks[2].facts.failed_at_us = 20;
  EXPECT_EQ(compare_ranks(ranks).first_failure, 1U);
}

TEST(FirstFailure, IsUnknownWhereARecordingHasNoTimes) {
  std::vector<Rank> ranks = {rank(0, kReplica, 1000), rank(1, kReplica, 900)};
  for (Rank& each : ranks) each.facts.failed = true;
  ranks[1].facts.failed_at_us = 10;
  const RankComparison comparison = compare_ranks(ranks);
  EXPECT_EQ(comparison.first_failure, std::nullopt);
  EXPECT_EQ(comparison.chosen, 0U);  // of the failed the one that peaks highest
}

TEST(Ranks, ThatCannotBeReadAreInNoGroup) {
  std::vector<Rank> ranks = {rank(0, kReplica, 1000), rank(1, kReplica, 0)};
  ranks[1].error = Error{.code = "file-empty", .what = "the file is empty", .where = "rank1", .hint = ""};
  const RankComparison comparison = compare_ranks(ranks);
  EXPECT_EQ(comparison.group_of[1], std::nullopt);
  EXPECT_EQ(comparison.unreadable, 1);
  EXPECT_EQ(comparison.chosen, 0U);
}

TEST(Ranks, ThatAreSnapshotsOfOneProcessCountOnce) {
  const EventSample one = {1, 2, 3, 4, 5, 6};
  std::vector<Rank> ranks = {rank(0, kReplica, 1000), rank(0, kReplica, 1100), rank(0, kReplica, 1200)};
  for (Rank& each : ranks) each.rank = std::nullopt;
  ranks[0].facts.events_sample = one;
  ranks[1].facts.events_sample = {3, 4, 5, 6, 7, 8};
  ranks[1].facts.failed = true;
  ranks[2].facts.events_sample = {5, 6, 9, 10, 11, 12};  // two in common may be chance
  const std::vector<Rank> repeats = take_out_repeats(ranks);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].facts.peak_allocated_bytes, 1100);
  EXPECT_EQ(ranks[1].facts.peak_allocated_bytes, 1200);
  ASSERT_EQ(repeats.size(), 1U);
  EXPECT_EQ(repeats[0].facts.peak_allocated_bytes, 1000);
}

TEST(Ranks, ThatTheirNamesNumberApartAllStay) {
  std::vector<Rank> ranks = {rank(0, kReplica, 1000), rank(1, kReplica, 1000)};
  for (Rank& each : ranks) each.facts.events_sample = {1, 2, 3, 4};
  EXPECT_TRUE(take_out_repeats(ranks).empty());
  EXPECT_EQ(ranks.size(), 2U);
}

TEST(Ranks, WithNumbersAtTheirEndsMayBeSnapshotsOfOneProcessButNotCopies) {
  std::vector<Rank> ranks = {rank(1, kReplica, 1000), rank(2, kReplica, 1000), rank(3, kReplica, 1000)};
  for (Rank& each : ranks) {
    each.says_rank = false;
    each.facts.events_sample = {1, 2, 3, 4};
  }
  ranks[1].facts.events += 500;  // a later snapshot; the third is a copy of the first
  EXPECT_EQ(take_out_repeats(ranks).size(), 1U);
}

TEST(Ranks, ThatNoNameTellsAndThatMostlyDifferAreNone) {
  std::vector<Rank> ranks = {rank(1, design({1, 2}), 1000), rank(2, design({3, 4}), 900), rank(3, design({5}), 800)};
  EXPECT_FALSE(compare_ranks(ranks).unrelated);  // stages of a pipeline
  for (Rank& each : ranks) each.says_rank = false;
  EXPECT_TRUE(compare_ranks(ranks).unrelated);
}

TEST(EventSample, TellsALaterSnapshotOfTheProcessFromAnotherProcess) {
  constexpr uint64_t kA = 0x7f0000000000;
  const auto sample_of = [](int events, int64_t size) {
    SnapshotBuilder builder;
    builder.segment_alloc(kA, 20 * kMiB);
    for (int i = 0; i < events; ++i) builder.alloc(kA, size).free(kA, size);
    const Snapshot snapshot = builder.build();
    return sample_events(snapshot.traces.front());
  };
  EXPECT_TRUE(is_same_process(sample_of(50, kMiB), sample_of(90, kMiB)));
  EXPECT_FALSE(is_same_process(sample_of(50, kMiB), sample_of(50, 2 * kMiB)));
}

TEST(LookAtRank, FindsFailurePeakAndSites) {
  constexpr uint64_t kA = 0x7f0000000000;
  SnapshotBuilder builder;
  builder.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).oom(8 * kMiB, 1 * kMiB);
  builder.segment(kA, {live_block(5 * kMiB), {.size = 15 * kMiB}});
  const Snapshot snapshot = builder.build();
  const std::unique_ptr<Verification> verification = verify(snapshot, 0);
  const RankFacts facts = look_at_rank(*verification);
  EXPECT_TRUE(facts.failed);
  EXPECT_EQ(facts.request_bytes, 8 * kMiB);
  EXPECT_EQ(facts.failed_at_us, 2);
  EXPECT_EQ(facts.peak_allocated_bytes, 5 * kMiB);
  ASSERT_EQ(facts.sites.size(), 1U);
  EXPECT_EQ(facts.sites[0].bytes, 5 * kMiB);
  EXPECT_TRUE(facts.design.from_start);
}

}  // namespace
}  // namespace oomscope
