// What is said of the ranks of a job, and of recordings that are no job.
#include "report/ranks_document.h"

#include <gtest/gtest.h>

#include "report/document.h"

namespace oomscope {
namespace {

Rank rank(std::optional<int64_t> number, std::string label, std::vector<uint64_t> places, int64_t peak_bytes) {
  Rank rank{.label = std::move(label),
            .path = "",
            .node = std::nullopt,
            .rank = number,
            .says_rank = number.has_value(),
            .error = std::nullopt,
            .facts = {}};
  rank.facts.events = 1000;
  rank.facts.peak_allocated_bytes = peak_bytes;
  rank.facts.design = Design{
      .from_start = true, .paths = places, .large = places, .recurring = places, .kept = {}, .ended_early = false};
  return rank;
}

RanksReport report_of(std::vector<Rank> ranks) {
  RanksReport report{.ranks = std::move(ranks), .comparison = {}, .caveats = {}};
  report.comparison = compare_ranks(report.ranks);
  return report;
}

std::string first_sentence(const RanksReport& report) {
  return std::get<Sentence>(ranks_sections(report, Language::english).front().body).text;
}

TEST(Ranks, AreLabelledByNodeAndDevice) {
  Rank named = rank(3, "", {1}, 1);
  EXPECT_EQ(rank_label(named, false, Language::english), "rank 3");
  named.node = 1;
  EXPECT_EQ(rank_label(named, true, Language::english), "node 1 rank 3 (device 0)");
}

TEST(Ranks, ThatAllCompletedNameTheHighestPeak) {
  const RanksReport report = report_of({rank(0, "", {1, 2}, 100), rank(1, "", {1, 2}, 200)});
  EXPECT_FALSE(report.comparison.unrelated);
  EXPECT_EQ(first_sentence(report).rfind("None of 2 ranks ran out of memory.", 0), 0u);
}

TEST(Recordings, WithoutRankAndWithoutACommonPlaceAreNoJob) {
  const RanksReport report = report_of({rank({}, "a.pickle", {1, 2}, 100), rank({}, "b.pickle", {3, 4}, 200)});
  EXPECT_TRUE(report.comparison.unrelated);
  EXPECT_EQ(first_sentence(report).rfind("2 recordings, hardly the ranks of one job", 0), 0u);
}

TEST(Recordings, ThatAskAlikeMayBeOneJobWhateverTheirNames) {
  EXPECT_FALSE(report_of({rank({}, "a.pickle", {1, 2}, 100), rank({}, "b.pickle", {1, 2}, 200)}).comparison.unrelated);
}

TEST(Recordings, NumberedAsRanksAreAJobOfDifferentStages) {
  EXPECT_FALSE(report_of({rank(0, "", {1, 2}, 100), rank(1, "", {3, 4}, 200)}).comparison.unrelated);
}

}  // namespace
}  // namespace oomscope
