#include "evidence/text/trigger_scan.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(TriggerScan, FindsEveryLiteralAtEveryPlaceInAnyCase) {
  const TriggerScan scan({"killed", "out of memory", "memory limit"});
  for (size_t before = 0; before < 40; ++before) {
    const std::string text = std::string(before, 'e') + "Out Of Memory" + std::string(before, 'k');
    const TriggerScan::Hit hit = scan.next(text, 0);
    EXPECT_EQ(hit.at, before);
    EXPECT_EQ(hit.literal, 1U);
    EXPECT_EQ(scan.next(text, before + 1).at, std::string_view::npos);
  }
}

TEST(TriggerScan, ShortTextsHoldNothing) {
  const TriggerScan scan({"killed"});
  for (std::string_view text : {"", "k", "kille", "illed ", "killex"}) {
    EXPECT_EQ(scan.next(text, 0).at, std::string_view::npos) << text;
  }
  EXPECT_EQ(scan.next("killed", 0).at, 0U);
}

TEST(TriggerScan, OverlappingLiteralsAreAllFound) {
  const TriggerScan scan({"abcabc"});
  const std::string text = "abcabcabc";
  EXPECT_EQ(scan.next(text, 0).at, 0U);
  EXPECT_EQ(scan.next(text, 1).at, 3U);
}

}  // namespace
}  // namespace oomscope
