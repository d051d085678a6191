#include "cli/why_evidence.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace oomscope {
namespace {

namespace fs = std::filesystem;

const char* const kMessage = "RuntimeError: CUDA error: out of memory\n";

class SortEvidence : public testing::Test {
 protected:
  SortEvidence() : folder_(fs::path(testing::TempDir()) / ("why_evidence." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SortEvidence() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  static Result<GivenEvidence> sort(const std::vector<std::string>& words) {
    return sort_evidence(words, Language::english);
  }

  fs::path folder_;
};

TEST_F(SortEvidence, AMessageIsReadAndAMistypedPathIsNone) {
  const Result<GivenEvidence> typed = sort({"CUDA out of memory. Tried to allocate 2.00 GiB"});
  ASSERT_TRUE(typed);
  EXPECT_EQ(typed->logs.size(), 1U);
  EXPECT_FALSE(sort({(folder_ / "absent.log").string()}));
  const Result<GivenEvidence> words = sort({"hello"});
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().code, "not-evidence");
}

TEST_F(SortEvidence, StandardInputIsReadOnce) {
  const Result<GivenEvidence> twice = sort({"-", "-"});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().what, "error.read-once");
}

TEST_F(SortEvidence, AFolderGivesLogsWithTheRanksOfItsFolders) {
  file("rank0/train.log", kMessage);
  file("rank1/train.log", "ncclInternalError\n");
  const Result<GivenEvidence> given = sort({folder_.string()});
  ASSERT_TRUE(given);
  ASSERT_EQ(given->logs.size(), 2U);
  EXPECT_EQ(given->logs[0].rank, 0);
  EXPECT_EQ(given->logs[1].rank, 1);
  EXPECT_TRUE(given->snapshots.empty());
}

TEST_F(SortEvidence, WhoPrintedNothingDoesNotKeepOthersFromBeingRead) {
  const std::string told = file("rank0.log", kMessage);
  const std::string empty = file("rank1.log", "");
  for (const std::vector<std::string>& words : {std::vector{folder_.string()}, std::vector{empty, told}}) {
    const Result<GivenEvidence> given = sort(words);
    ASSERT_TRUE(given);
    ASSERT_EQ(given->logs.size(), 1U);
    ASSERT_EQ(given->unread.size(), 1U);
    EXPECT_EQ(given->unread[0].error.code, "file-empty");
  }
  file("rank2/train.log", "");
  const Result<GivenEvidence> folders = sort({(folder_ / "rank2").string(), told});
  ASSERT_TRUE(folders);
  EXPECT_EQ(folders->logs.size(), 1U);
  EXPECT_EQ(folders->unread.size(), 1U);
  Caveats caveats;
  add_unread(folders->unread, caveats);
  ASSERT_EQ(caveats.size(), 1U);
  EXPECT_EQ(caveats[0].code, "rank-unreadable");
  const Result<GivenEvidence> alone = sort({empty});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, "file-empty");
}

TEST_F(SortEvidence, AFolderOfBothGivesBoth) {
  file("rank0.log", kMessage);
  file("rank0.pickle", "\x80\x04.");
  const Result<GivenEvidence> given = sort({folder_.string()});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->logs.size(), 1U);
  EXPECT_EQ(given->snapshots, std::vector<std::string>{folder_.string()});
}

TEST_F(SortEvidence, LogsThatSayNothingOfMemoryAreLeftToTheSnapshots) {
  file("notes.txt", "all is well\n");
  file("a.pickle", "\x80\x04.");
  const Result<GivenEvidence> given = sort({folder_.string()});
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->logs.empty());
  EXPECT_EQ(given->snapshots.size(), 1U);
}

}  // namespace
}  // namespace oomscope
