#include "base/did_you_mean.h"

#include <gtest/gtest.h>

#include <string>

namespace oomscope {
namespace {

TEST(EditDistance, CountsEachKindOfSlipAsOne) {
  EXPECT_EQ(edit_distance("replay", "replay"), 0);
  EXPECT_EQ(edit_distance("repaly", "replay"), 1);
  EXPECT_EQ(edit_distance("rplay", "replay"), 1);
  EXPECT_EQ(edit_distance("replayy", "replay"), 1);
  EXPECT_EQ(edit_distance("reploy", "replay"), 1);
  EXPECT_EQ(edit_distance("", "why"), 3);
  EXPECT_EQ(edit_distance("why", ""), 3);
}

TEST(DidYouMean, FindsTheNearest) {
  EXPECT_EQ(did_you_mean("wyh", {"show", "why", "verify"}), "why");
  EXPECT_EQ(did_you_mean("REPLAY", {"show", "replay"}), "replay");
}

TEST(DidYouMean, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(did_you_mean("train", {"show", "why", "verify"}), "");
  EXPECT_EQ(did_you_mean("", {"why"}), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 'a'), {"why"}), "");
}

}  // namespace
}  // namespace oomscope
