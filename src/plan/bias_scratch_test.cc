// Sizes as recorded on an H200 with torch 2.11: rows of 512 tokens a sample, columns of GPT and BERT layers.
#include "plan/bias_scratch.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(BiasScratch, FewRowsNeedNone) {
  EXPECT_EQ(sum_scratch(512, 768).scratch_bytes, 0);
  EXPECT_EQ(sum_scratch(1020, 768).scratch_bytes, 0);
}

TEST(BiasScratch, GrowsWithRowsAndColumns) {
  EXPECT_EQ(sum_scratch(1024, 768).scratch_bytes, 6291456);
  EXPECT_EQ(sum_scratch(1024, 768).semaphore_bytes, 24);
  EXPECT_EQ(sum_scratch(4096, 768).scratch_bytes, 25165824);
  EXPECT_EQ(sum_scratch(4096, 3072).scratch_bytes, 100663296);
  EXPECT_EQ(sum_scratch(4096, 3072).semaphore_bytes, 96);
}

TEST(BiasScratch, RowsThatAreNoMultipleAreRoundedUp) { EXPECT_EQ(sum_scratch(6304, 384).scratch_bytes, 19464192); }

TEST(BiasScratch, EndsToGrowWhereTheCardIsFull) { EXPECT_EQ(sum_scratch(8192, 3072).scratch_bytes, 138412032); }

TEST(BiasScratch, OddSizesNeedNoNegativeScratch) {
  for (int64_t columns : {0, 1, 2, 3, 5, 130}) {
    for (int64_t rows : {0, 1, 7, 100000}) EXPECT_GE(sum_scratch(rows, columns).scratch_bytes, 0);
  }
}

}  // namespace
}  // namespace oomscope
