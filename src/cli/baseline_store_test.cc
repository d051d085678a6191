#include "cli/baseline_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace oomscope {
namespace {

class BaselineStoreTest : public testing::Test {
 protected:
  BaselineStoreTest()
      : folder_(std::filesystem::temp_directory_path() / ("oomscope-store-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~BaselineStoreTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return (folder_ / "below" / "store.sqlite").string(); }

  static StoredBaseline baseline(const std::string& project, const std::string& name, const std::string& json) {
    return {.project = project, .name = name, .configuration = "c", .saved_at_s = 7, .peaks_json = json};
  }

  std::filesystem::path folder_;
};

TEST_F(BaselineStoreTest, TheNewestOfANameCounts) {
  Result<BaselineStore> store = BaselineStore::open(path(), true);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->save(baseline("p", "a", "1")));
  ASSERT_TRUE(store->save(baseline("p", "b", "2")));
  ASSERT_TRUE(store->save(baseline("p", "a", "3")));
  ASSERT_TRUE(store->save(baseline("q", "a", "4")));
  const Result<std::vector<StoredBaseline>> of_p = store->list("p");
  ASSERT_TRUE(of_p);
  ASSERT_EQ(of_p->size(), 2u);
  EXPECT_EQ(of_p->front().peaks_json, "3");
  EXPECT_EQ(store->list("")->size(), 3u);
}

TEST_F(BaselineStoreTest, TextsWithQuotesAndZeroBytesComeBack) {
  Result<BaselineStore> store = BaselineStore::open(path(), true);
  ASSERT_TRUE(store);
  const std::string odd("it's \"x\"; DROP TABLE baseline;\0 end", 35);
  ASSERT_TRUE(store->save(baseline(odd, odd, odd)));
  const Result<std::vector<StoredBaseline>> found = store->list(odd);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().peaks_json, odd);
}

TEST_F(BaselineStoreTest, WithoutAFileThereIsNoStoreAndNoneIsMade) {
  const Result<BaselineStore> store = BaselineStore::open(path(), false);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, "store-missing");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(BaselineStoreTest, AnotherFileIsAnErrorAndStaysAsItIs) {
  const std::string file = (folder_ / "train.log").string();
  std::ofstream(file)
      << "CUDA out of memory, and a good deal more than a hundred bytes of text, so that it is no empty file.";
  const auto size = std::filesystem::file_size(file);
  const Result<BaselineStore> store = BaselineStore::open(file, true);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, "store-unreadable");
  EXPECT_EQ(std::filesystem::file_size(file), size);
}

}  // namespace
}  // namespace oomscope
