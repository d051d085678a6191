#include "cli/stats_file.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

Stats one_block() {
  Stats stats;
  stats.allocation.increase(true, 1);
  stats.allocated_bytes.increase(true, 512);
  stats.num_device_alloc = 1;
  return stats;
}

TEST(StatsFile, CountsEqualNumbersAndNamesTheOthers) {
  const std::string text =
      "{\"allocation.all.current\": 1, \"allocated_bytes.small_pool.peak\": 512, \"num_device_alloc\": 2, "
      "\"num_sync_all_streams\": 7, \"max_split_size\": -1}";
  const Result<StatsComparison> result = compare_stats_text(text, "stats.json", one_block(), AllocatorSettings{});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->total, 4);
  EXPECT_EQ(result->equal, 3);
  ASSERT_EQ(result->differences.size(), 1u);
  EXPECT_EQ(result->differences[0].name, "num_device_alloc");
  EXPECT_EQ(result->differences[0].recorded, 2);
  EXPECT_EQ(result->differences[0].model, 1);
}

TEST(StatsFile, FindsTheDictionaryInsideAResult) {
  const Result<StatsComparison> result = compare_stats_text("{\"ok\": true, \"stats\": {\"num_ooms\": 0}}",
                                                            "result.json", one_block(), AllocatorSettings{});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->equal, 1);
}

TEST(StatsFile, OtherFilesAreErrors) {
  EXPECT_EQ(compare_stats_text("nonsense", "x", Stats{}, AllocatorSettings{}).error().code, "stats-not-json");
  EXPECT_EQ(compare_stats_text("{\"a\": 1}", "x", Stats{}, AllocatorSettings{}).error().code, "stats-empty");
  EXPECT_EQ(compare_stats_file("/no/such/file", Stats{}, AllocatorSettings{}).error().code, "file-not-found");
}

}  // namespace
}  // namespace oomscope
