#include "base/source_path.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(SourcePath, PartsAndEndingsAreFoundOnWindowsToo) {
  constexpr std::string_view kLinux = "/usr/lib/python3/site-packages/torch/nn/functional.py";
  constexpr std::string_view kWindows = "C:\\Python311\\Lib\\site-packages\\torch\\nn\\functional.py";
  for (std::string_view path : {kLinux, kWindows}) {
    EXPECT_TRUE(path_has(path, "torch/nn/")) << path;
    EXPECT_FALSE(path_has(path, "torch/optim/")) << path;
    EXPECT_TRUE(path_ends_with(path, "torch/nn/functional.py")) << path;
    EXPECT_FALSE(path_ends_with(path, "torch/nn/")) << path;
  }
  EXPECT_FALSE(path_ends_with("functional.py", "nn/functional.py"));
}

}  // namespace
}  // namespace oomscope
