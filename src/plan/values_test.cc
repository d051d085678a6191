#include "plan/values.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

std::vector<int64_t> found(const ValueQuestion& question) {
  const Result<FoundValues> result = find_values(question);
  return result ? result->values : std::vector<int64_t>{};
}

TEST(Values, BatchAndLengthInTheNamesAreTwoQuantities) {
  const Result<FoundValues> both =
      find_values({.paths = {"bert-b2-s128.pickle", "bert-b4-s256.pickle"}, .growth = {4.0}, .given = {}});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().what, "error.values-of-two");
  const Result<FoundValues> sides =
      find_values({.paths = {"net-b2-s128.pickle", "net-b2-s256.pickle"}, .growth = {4.0}, .given = {}});
  ASSERT_TRUE(sides);
  EXPECT_EQ(sides->values, (std::vector<int64_t>{128, 256}));
  EXPECT_FALSE(sides->are_batches);
}

TEST(Values, NamesTellBatches) {
  for (const char* form : {"b", "bs", "batch", "batch-", "runs/batch_size="}) {
    const std::string name = form;
    const Result<FoundValues> found =
        find_values({.paths = {name + "2.pickle", name + "8.pickle"}, .growth = {4.0}, .given = {}});
    ASSERT_TRUE(found) << form;
    EXPECT_TRUE(found->are_batches) << form;
  }
}

TEST(Values, GivenOnesAreTaken) {
  EXPECT_EQ(found({.paths = {"a", "b"}, .growth = {1.7}, .given = std::vector<int64_t>{3, 5}}),
            (std::vector<int64_t>{3, 5}));
}

TEST(Values, NumbersInNamesCountWhereTheSizesConfirmThem) {
  EXPECT_EQ(found({.paths = {"v2/b4.pickle", "v2/b8.pickle"}, .growth = {2.0}, .given = {}}),
            (std::vector<int64_t>{4, 8}));
}

TEST(Values, AnImagesSideGrowsBySquares) {
  EXPECT_EQ(found({.paths = {"s128.pickle", "s192.pickle"}, .growth = {2.25}, .given = {}}),
            (std::vector<int64_t>{128, 192}));
}

TEST(Values, WithoutNamesTheSmallestWholeNumbersInTheRatioStandForThem) {
  EXPECT_EQ(found({.paths = {"small.pickle", "large.pickle"}, .growth = {1.5}, .given = {}}),
            (std::vector<int64_t>{2, 3}));
}

TEST(Values, RecordingsOfOneSizeCannotBeScaled) {
  const Result<FoundValues> result = find_values({.paths = {"a", "b"}, .growth = {1.0}, .given = {}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "values-unknown");
}

TEST(Values, TwoRecordingsOfOneValueAreRefused) {
  const Result<FoundValues> result =
      find_values({.paths = {"a", "b"}, .growth = {2.0}, .given = std::vector<int64_t>{4, 4}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "values-wrong");
}

TEST(Values, AListIsWholeNumbersAboveZero) {
  EXPECT_EQ(*parse_values("--values", "1,2,16"), (std::vector<int64_t>{1, 2, 16}));
  for (const char* text : {"", ",", "1,", "1,,2", "0,1", "-1,2", "1.5,2", "a,b", "1, 2", "99999999999999999999,1"}) {
    EXPECT_FALSE(parse_values("--values", text)) << text;
  }
}

}  // namespace
}  // namespace oomscope
