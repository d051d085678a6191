#include "evidence/rank_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace oomscope {
namespace {

std::optional<int64_t> rank_of(const std::string& path) { return read_rank_name(path).rank; }

TEST(RankNames, SayTheRankInManyWays) {
  EXPECT_EQ(rank_of("rank0.pickle"), 0);
  EXPECT_EQ(rank_of("snapshot_rank_3.pickle.gz"), 3);
  EXPECT_EQ(rank_of("rank3_step100.pickle"), 3);
  EXPECT_EQ(rank_of("memory_snapshot-Rank-07.pkl.zst"), 7);
  EXPECT_EQ(rank_of("iteration_10/rank12_memory_snapshot.pickle"), 12);
  EXPECT_EQ(rank_of("rank5/snapshot.pickle"), 5);
  EXPECT_EQ(rank_of("gpu6.pickle"), 6);
}

TEST(RankNames, PreferTheGlobalRank) {
  const RankFile file = read_rank_name("node1/global_rank9_local_rank1.pickle");
  EXPECT_EQ(file.rank, 9);
  EXPECT_EQ(file.node, std::nullopt);
}

TEST(RankNames, KeepTheNodeOfALocalRank) {
  const RankFile file = read_rank_name("node2_rank1.pickle");
  EXPECT_EQ(file.node, 2);
  EXPECT_EQ(file.rank, 1);
}

TEST(RankNames, DoNotReadRanksIntoOtherWords) {
  EXPECT_EQ(rank_of("frank3.pickle"), std::nullopt);
  EXPECT_EQ(rank_of("rank20251224123456.pickle"), std::nullopt);
  EXPECT_EQ(rank_of("snapshot.pickle"), std::nullopt);
}

TEST(NaturalOrder, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("rank2.pickle", "rank10.pickle"));
  EXPECT_FALSE(natural_less("rank10.pickle", "rank2.pickle"));
  EXPECT_TRUE(natural_less("a01", "a1"));
  EXPECT_FALSE(natural_less("a1", "a1"));
}

std::vector<std::string> chosen(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const RankFile& file : choose_rank_files(paths).files) names.push_back(file.path);
  return names;
}

TEST(ChooseRankFiles, OrdersByNodeThenRank) {
  EXPECT_EQ(chosen({"node1_rank0.pickle", "node0_rank10.pickle", "node0_rank2.pickle"}),
            (std::vector<std::string>{"node0_rank2.pickle", "node0_rank10.pickle", "node1_rank0.pickle"}));
}

TEST(ChooseRankFiles, TakesTheNumberAtTheEndWhereNamesAreAlikeOtherwise) {
  const RankFiles ranks = choose_rank_files({"trace-10.pickle", "trace-0.pickle"});
  ASSERT_EQ(ranks.files.size(), 2U);
  EXPECT_EQ(ranks.files[1].rank, 10);
  EXPECT_EQ(choose_rank_files({"gpt_1.pickle", "resnet_1.pickle"}).files.size(), 2U);
}

TEST(ChooseRankFiles, PrefersTheSnapshotOfTheFailure) {
  const RankFiles ranks =
      choose_rank_files({"rank0/snapshot.pickle", "rank0/oom_snapshot.pickle", "rank1/snapshot.pickle"});
  ASSERT_EQ(ranks.files.size(), 2U);
  EXPECT_EQ(ranks.files[0].path, "rank0/oom_snapshot.pickle");
  ASSERT_EQ(ranks.caveats.size(), 1U);
  EXPECT_EQ(ranks.caveats[0].code, "older-snapshots");
}

TEST(ChooseRankFiles, TakesTheLastIterationOfARank) {
  EXPECT_EQ(chosen({"iteration_9/rank0.pickle", "iteration_10/rank0.pickle"}),
            std::vector<std::string>{"iteration_10/rank0.pickle"});
  EXPECT_EQ(chosen({"iteration_9_exit/rank0.pickle", "iteration_10/rank0.pickle"}),
            std::vector<std::string>{"iteration_9_exit/rank0.pickle"});
}

TEST(ChooseRankFiles, KeepsJobsApart) {
  const RankFiles ranks = choose_rank_files({"ddp/rank0/snapshot.pickle", "zero/rank0/snapshot.pickle"});
  ASSERT_EQ(ranks.files.size(), 2U);
  EXPECT_EQ(ranks.files[1].job, "zero");
  EXPECT_EQ(ranks.caveats[0].code, "several-jobs");
}

TEST(ChooseRankFiles, TakesAFolderWithARankInItsNameForAJob) {
  EXPECT_EQ(chosen({"ema_on_rank0/rank1.pickle", "plain/rank1.pickle"}).size(), 2U);
  EXPECT_EQ(chosen({"rank0/memory/rank0.pickle", "rank1/memory/rank1.pickle"}).size(), 2U);
  EXPECT_TRUE(choose_rank_files({"rank0/memory/rank0.pickle", "rank1/memory/rank1.pickle"}).caveats.empty());
}

TEST(ChooseRankFiles, LeavesFilesWithoutRankAside) {
  const RankFiles ranks = choose_rank_files({"rank0.pickle", "rank1.pickle", "snapshot.pickle"});
  EXPECT_EQ(ranks.files.size(), 2U);
  EXPECT_EQ(ranks.caveats[0].code, "files-without-rank");
}

TEST(FindRankFiles, LooksOnlyBelowTheFolderAndNotAtItsOwnName) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / std::to_string(getpid()) / "rank7_job";
  std::filesystem::create_directories(root / "rank1");
  std::ofstream(root / "rank1" / "snapshot.pickle") << "x";
  std::ofstream(root / "notes.txt") << "x";
  const Result<RankFiles> found = find_rank_files(root.string());
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->files.size(), 1U);
  EXPECT_EQ(found->files[0].rank, 1);
  std::filesystem::remove_all(root);
}

TEST(FindRankFiles, SaysThatAFolderHoldsNone) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / std::to_string(getpid()) / "no_ranks";
  std::filesystem::create_directories(root);
  const Result<RankFiles> found = find_rank_files(root.string());
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, "no-snapshots");
  std::filesystem::remove_all(root);
}

TEST(ChooseRankFiles, WordsOfFailureAreWholeWords) {
  EXPECT_TRUE(choose_rank_files({"rank0_oom.pickle"}).files[0].is_oom);
  EXPECT_FALSE(choose_rank_files({"bloom_rank0.pickle"}).files[0].is_oom);
}

TEST(LookLikeRanks, NeedsNamesThatDifferInTheRankAlone) {
  EXPECT_TRUE(look_like_ranks({"run/rank0.pickle", "run/rank1.pickle"}));
  EXPECT_FALSE(look_like_ranks({"before_rank0.pickle", "after_rank0.pickle"}));
  EXPECT_FALSE(look_like_ranks({"a.pickle", "b.pickle"}));
  EXPECT_FALSE(look_like_ranks({"rank0.pickle"}));
}

TEST(ChooseRankFiles, KeepsAFailuresSnapshotThatNamesNoRank) {
  const RankFiles chosen = choose_rank_files({"rank0.pickle", "rank1.pickle", "oom_snapshot.pickle", "model.pickle"});
  ASSERT_EQ(chosen.files.size(), 3U);
  EXPECT_EQ(chosen.files[0].path, "oom_snapshot.pickle");
  EXPECT_FALSE(chosen.files[0].says_rank);
  EXPECT_TRUE(chosen.files[1].says_rank);
  EXPECT_EQ(chosen.caveats.size(), 1U);
}

TEST(ChooseRankFiles, ReadsNoRankFromADate) {
  for (const std::vector<std::string>& paths :
       std::vector<std::vector<std::string>>{{"snap_2024-01-01.pickle", "snap_2024-01-02.pickle"},
                                             {"snap_20240101.pickle", "snap_20240102.pickle"},
                                             {"snap_1700000001.pickle", "snap_1700000002.pickle"}}) {
    for (const RankFile& file : choose_rank_files(paths).files) EXPECT_EQ(file.rank, std::nullopt) << file.path;
  }
}

TEST(DistinctNames, TakeAsManyFoldersAsItNeeds) {
  EXPECT_EQ(distinct_names({"x/a.pickle", "x/b.pickle"}), (std::vector<std::string>{"a.pickle", "b.pickle"}));
  EXPECT_EQ(distinct_names({"x/a.pickle", "y/a.pickle"}), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(distinct_names({"x/a.pickle", "y/a.pickle", "y/b.pickle"}),
            (std::vector<std::string>{"x/a.pickle", "y/a.pickle", "y/b.pickle"}));
}

}  // namespace
}  // namespace oomscope
