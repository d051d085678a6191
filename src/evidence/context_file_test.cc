#include "evidence/context_file.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(Context, ReadsCardLimitAndProcesses) {
  const std::optional<FailureContext> context = read_context(R"({"schema": "oomscope.context/1",
    "snapshot": "oom.pickle", "device": 1, "name": "a card", "card_bytes": 100, "limit_bytes": null,
    "card": {"processes": [{"pid": 1, "bytes": 60, "own": true}, {"pid": 2, "bytes": 30, "own": false}]}})");
  ASSERT_TRUE(context);
  EXPECT_EQ(context->snapshot, "oom.pickle");
  EXPECT_EQ(context->device, 1);
  EXPECT_EQ(context->card_bytes, 100);
  EXPECT_EQ(context->limit_bytes, std::nullopt);
  EXPECT_EQ(context->own_bytes, 60);
  EXPECT_EQ(context->others_bytes, 30);
}

TEST(Context, OthersAreUnknownWhereAProcessOrOurselvesAreMissing) {
  const auto others_of = [](const char* processes) {
    return read_context(R"({"schema": "oomscope.context/1", "card": {"processes": )" + std::string(processes) + "}}")
        ->others_bytes;
  };
  EXPECT_EQ(others_of(R"([{"bytes": 60, "own": true}, {"bytes": null, "own": false}])"), std::nullopt);
  EXPECT_EQ(others_of(R"([{"bytes": 60, "own": false}])"), std::nullopt);
  EXPECT_EQ(others_of(R"([{"bytes": 60, "own": true}])"), 0);
}

TEST(Context, ImpossibleFiguresAreEmpty) {
  const std::optional<FailureContext> context =
      read_context(R"({"schema": "oomscope.context/1", "card_bytes": -5, "limit_bytes": "24GiB", "device": 99999})");
  ASSERT_TRUE(context);
  EXPECT_FALSE(context->card_bytes || context->limit_bytes || context->device);
}

TEST(Context, OtherFilesAreNone) {
  EXPECT_FALSE(read_context("{}"));
  EXPECT_FALSE(read_context("[1, 2"));
  EXPECT_FALSE(read_context(R"({"schema": "oomscope.peaks/1"})"));
}

}  // namespace
}  // namespace oomscope
