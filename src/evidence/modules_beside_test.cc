#include "evidence/modules_beside.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(Modules, SayWhatTheyKeepAndOfWhichShape) {
  const std::vector<ModuleUse> modules = read_modules(R"({"schema": "oomscope.marks/1", "marks": [], "modules": [
    {"name": "blocks.7.attn", "kept_bytes": 536870912, "largest": [[8, 12, 1024, 1024], "float32"]},
    {"name": "ln", "kept_bytes": 0, "largest": null}]})");
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].name, "blocks.7.attn");
  EXPECT_EQ(modules[0].kept_bytes, 536870912);
  EXPECT_EQ(modules[0].largest, "(8, 12, 1024, 1024) float32");
}

TEST(Modules, OddRowsAreLeftOut) {
  const std::vector<ModuleUse> modules = read_modules(
      R"({"modules": [3, {"name": 1}, {"name": "a", "kept_bytes": -4}, {"name": "b", "kept_bytes": 4, "largest": [1, 2]}]})");
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].largest, "");
  EXPECT_TRUE(read_modules("[]").empty());
  EXPECT_TRUE(read_modules("no JSON").empty());
}

}  // namespace
}  // namespace oomscope
