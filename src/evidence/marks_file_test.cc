#include "evidence/marks_file.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

Snapshot snapshot_with_events() {
  Snapshot snapshot;
  snapshot.traces.resize(2);
  for (Trace& trace : snapshot.traces) {
    trace.action.push_back(Action::alloc);
    trace.addr.push_back(0);
    trace.size.push_back(512);
  }
  return snapshot;
}

constexpr std::string_view kTwoMarks = R"({"schema": "oomscope.marks/1", "marks": [
  {"name": "oomscope.step:1", "stage": "END", "time_us": 20, "device": 0},
  {"name": "oomscope.step:1", "stage": "START", "time_us": 10, "device": 0}]})";

TEST(Marks, BecomeAnnotationsOfAllDevicesInTheOrderOfTime) {
  Snapshot snapshot = snapshot_with_events();
  ASSERT_TRUE(add_marks(kTwoMarks, snapshot));
  ASSERT_EQ(snapshot.annotations.size(), 2u);
  EXPECT_TRUE(snapshot.annotations[0].is_start);
  EXPECT_EQ(snapshot.annotations[0].time_us, 10);
  EXPECT_EQ(snapshot.annotations[1].device, Annotation::kAllDevices);
  EXPECT_EQ(snapshot.strings.text(snapshot.annotations[1].name), "oomscope.step:1");
}

TEST(Marks, OfAnotherShapeAddNothing) {
  for (std::string_view text :
       {"", "[]", R"({"schema": "other/1", "marks": []})", R"({"schema": "oomscope.marks/1"})",
        R"({"schema": "oomscope.marks/1", "marks": [{"name": "a", "stage": "START"}]})",
        R"({"schema": "oomscope.marks/1", "marks": [{"name": "a", "stage": "x", "time_us": 1}]})"}) {
    Snapshot snapshot = snapshot_with_events();
    EXPECT_FALSE(add_marks(text, snapshot)) << text;
    EXPECT_TRUE(snapshot.annotations.empty());
  }
}

}  // namespace
}  // namespace oomscope
