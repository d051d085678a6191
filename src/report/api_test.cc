#include <gtest/gtest.h>

#include "oomscope/oomscope.h"

namespace oomscope::api {
namespace {

const std::string kDemo = std::string(OOMSCOPE_TEST_DATA) + "/demo_oom.pickle.zst";

TEST(Api, WhyTellsFragmentation) {
  const JsonAnswer answer = why(kDemo);
  ASSERT_TRUE(answer.status.ok()) << answer.status.what;
  EXPECT_NE(answer.json.find("\"kind\": \"gpu_oom_fragmentation\""), std::string::npos);
}

TEST(Api, ReplayWithExpandableSegmentsCompletesWhereTheRecordingFailed) {
  const ReplayAnswer answer = replay(kDemo, {.conf = "expandable_segments:True", .cap_bytes = int64_t{6406} << 20});
  ASSERT_TRUE(answer.status.ok()) << answer.status.what;
  EXPECT_TRUE(answer.recording_exact);
  EXPECT_TRUE(answer.completed);
  EXPECT_EQ(answer.peak_reserved, int64_t{5812} << 20);
}

TEST(Api, MissingFileIsAStatus) { EXPECT_EQ(why("no such file").status.code, "file-not-found"); }

TEST(Api, BadSettingIsAStatus) {
  EXPECT_FALSE(replay(kDemo, {.conf = "max_split:1", .cap_bytes = std::nullopt}).status.ok());
}

}  // namespace
}  // namespace oomscope::api
