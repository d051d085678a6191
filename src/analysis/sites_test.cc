#include "analysis/sites.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(NormalFile, LeavesTheFolderOut) { EXPECT_EQ(normal_file("/home/me/run7/train.py"), "train.py"); }

TEST(NormalFile, HidesWhatDiffersFromRunToRun) {
  EXPECT_EQ(normal_file("/tmp/torchinductor_me/ab/cab2tkqv3eyz6xqvt5fk4ubz47hyp2mvkgk3tzvlqvlwxe3lb2wd.py"), "*.py");
  EXPECT_EQ(normal_file("/tmp/ipykernel_48213/1835294.py"), "*.py");
  EXPECT_EQ(normal_file("<eval_with_key>.12"), "<eval_with_key>.12");
  EXPECT_EQ(normal_file("model_2024.py"), "model_2024.py");
}

TEST(NormalFunction, HidesTheLineAtWhichDynamoResumes) {
  EXPECT_EQ(normal_function("torch_dynamo_resume_in_main_at_42"), "torch_dynamo_resume_in_main_at_*");
  EXPECT_EQ(normal_function("forward"), "forward");
  EXPECT_EQ(normal_function("look_at_me"), "look_at_me");
}

TEST(SiteText, NamesFileLineAndFunction) {
  LiveSite site;
  EXPECT_EQ(site_text(site), "");
  site.file = "/home/me/train.py";
  site.line = 88;
  site.function = "forward";
  EXPECT_EQ(site_text(site), "train.py:88 forward");
}

}  // namespace
}  // namespace oomscope
