#include "report/terminal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace oomscope {
namespace {

const TerminalOptions kPlain{};
const TerminalOptions kUnicode{.width_columns = 80, .colour = false, .unicode = true};
const TerminalOptions kColour{.width_columns = 80, .colour = true, .unicode = true};

TEST(Styled, AddsCodesOnlyWithColour) {
  EXPECT_EQ(styled("x", Style::bold, kPlain), "x");
  EXPECT_EQ(styled("x", Style::bold, kColour), "\x1b[1mx\x1b[0m");
  EXPECT_EQ(styled("x", Style::plain, kColour), "x");
  EXPECT_EQ(styled("", Style::red, kColour), "");
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("gr\u00f6\u00dfe"), 5);
  EXPECT_EQ(display_width("\u6a21\u578b.py"), 7);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("\xff"), 1);
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain \u00e9"), "plain \u00e9");
  EXPECT_EQ(printable("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "evil"),
            "\\xe2\\x80\\xae"
            "evil");
  EXPECT_EQ(printable("cut \xe2\x82"), "cut \\xe2\\x82");
}

TEST(Shorten, KeepsTheEndThatMatters) {
  EXPECT_EQ(shorten("short", 5, Keep::head, kPlain), "short");
  EXPECT_EQ(shorten("a long sentence", 8, Keep::head, kPlain), "a long..");
  EXPECT_EQ(shorten("/very/long/path/model.py", 10, Keep::tail, kUnicode), "\u2026/model.py");
  EXPECT_EQ(shorten("abcdef", 1, Keep::head, kPlain), ".");
  EXPECT_EQ(shorten("\u6a21\u578b\u6a21\u578b", 5, Keep::head, kUnicode), "\u6a21\u578b\u2026");
}

TEST(Wrap, BreaksAtBlanksAndKeepsLongWords) {
  EXPECT_EQ(wrap("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("averyverylongword x", 8), (std::vector<std::string>{"averyverylongword", "x"}));
  EXPECT_EQ(wrap("a\nb", 8), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(wrap("a:1,b:2 1,024", 8), (std::vector<std::string>{"a:1,b:2", "1,024"}));
  EXPECT_EQ(wrap("first:1,second:2", 10), (std::vector<std::string>{"first:1,", "second:2"}));
  EXPECT_EQ(wrap("", 8), (std::vector<std::string>{""}));
}

TEST(Wrap, BreaksChineseBetweenCharactersAndNotBeforeAComma) {
  EXPECT_EQ(wrap("申请 1 GiB 失败，已满", 10), (std::vector<std::string>{"申请 1 GiB", "失败，已满"}));
  EXPECT_EQ(wrap("申请失败，已满", 8), (std::vector<std::string>{"申请失", "败，已满"}));
}

TEST(Sparkline, ScalesToTheLargest) {
  EXPECT_EQ(sparkline({0, 4, 8}, kPlain), "_-#");
  EXPECT_EQ(sparkline({0, 8}, kUnicode), "\u2581\u2588");
  EXPECT_EQ(sparkline({std::nan(""), -1, 0}, kPlain), "___");
  EXPECT_EQ(sparkline({}, kPlain), "");
}

TEST(DownsampleMax, KeepsPeaks) {
  EXPECT_EQ(downsample_max({1, 9, 1, 1, 2, 1}, 2), (std::vector<double>{9, 2}));
  EXPECT_EQ(downsample_max({1, 2}, 5), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace oomscope
