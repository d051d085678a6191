// When it happened, as people read it.
#include "report/findings_document.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(InstantText, CountsTheProgramsStepsWhereAllAreRecorded) {
  const FindingInstant instant{.phase = Phase::backward, .event = 7, .step = 2};
  EXPECT_EQ(instant_text(instant, Language::english), "backward of the second step");
}

TEST(InstantText, SaysThatStepsAreTheRecordings) {
  const FindingInstant instant{.phase = Phase::backward, .event = 7, .step = 29, .counted_from_recording = true};
  EXPECT_EQ(instant_text(instant, Language::english), "backward of the recording's 29th step");
  EXPECT_EQ(instant_text(instant, Language::chinese), "录制中第 29 步的反向传播");
}

}  // namespace
}  // namespace oomscope
