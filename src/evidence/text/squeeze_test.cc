// What is taken off a log's lines, and where the rest came from.
#include "evidence/text/squeeze.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

std::string first_line(std::string_view raw) { return clean_lines(raw).front().text; }

TEST(CleanLines, LoseColoursAndPrefixesOfLoggers) {
  EXPECT_EQ(first_line("\x1b[31m2024-05-01 10:00:00,123 ERROR: out of memory\x1b[0m"), "out of memory");
  EXPECT_EQ(first_line("> > out of memory"), "out of memory");
}

TEST(CleanLines, KeepTheRankOfTheirPrefix) {
  const std::vector<CleanLine> lines = clean_lines("[rank3]: out of memory\nno prefix");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "out of memory");
  EXPECT_EQ(lines[0].rank, 3);
  EXPECT_FALSE(lines[1].rank);
}

TEST(CleanLines, SplitAtEscapedBreaksWhereThereAreSeveral) {
  EXPECT_EQ(clean_lines(R"(a\nb\nc)").size(), 3u);
  EXPECT_EQ(clean_lines(R"(C:\new)").size(), 1u) << "one such pair may be a path";
}

TEST(PlainLines, KeepTheirPrefixes) { EXPECT_EQ(plain_lines("ERROR: full").front().text, "ERROR: full"); }

TEST(CleanText, IsTheSameHoweverATerminalWrapsIt) {
  EXPECT_EQ(clean_text("Out \nof memory").squeezed, clean_text("Out of me\nmory").squeezed);
}

TEST(CleanText, KnowsWhereEachCharacterStood) {
  const std::string raw = "ERROR: a b\nc";
  const CleanText text = clean_text(raw);
  ASSERT_EQ(text.squeezed, "abc");
  ASSERT_EQ(text.raw_offsets.size(), text.squeezed.size());
  for (size_t i = 0; i < text.squeezed.size(); ++i) EXPECT_EQ(raw[text.raw_offsets[i]], text.squeezed[i]);
  EXPECT_EQ(text.squeezed_at(raw.find('c')), 2u);
}

}  // namespace
}  // namespace oomscope
