#include "evidence/text/cut_literals.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

const std::vector<std::string> kLiterals = {"of memory", "killed", "exit code"};

std::vector<TriggerScan::Hit> hits(std::string_view text) {
  static const CutLiterals literals(kLiterals);
  int64_t budget = 100;
  return literals.at(text, text.find('\n'), budget);
}

TEST(CutLiterals, AreFoundWhereverTheBreakIs) {
  const std::string literal = "of memory";
  for (size_t length = 1; length < literal.size(); ++length) {
    for (std::string_view line_break : {"\n", "\r\n", " \n  "}) {
      const std::string text =
          "ran out " + literal.substr(0, length) + std::string(line_break) + literal.substr(length) + " here";
      ASSERT_EQ(hits(text).size(), 1U) << text;
      EXPECT_EQ(hits(text)[0].at, 8U);
      EXPECT_EQ(hits(text)[0].literal, 0U);
    }
  }
}

TEST(CutLiterals, BehindPrefixesAndOverSeveralLines) {
  EXPECT_EQ(hits("[rank1]: out Of mem\n[rank1]: ory").size(), 1U);
  EXPECT_EQ(hits("2031-02-03 04:05:06 | ERROR | exit\n2031-02-03 04:05:06 | ERROR | code 137").size(), 1U);
  EXPECT_EQ(hits("exi\nt c\node 137").size(), 1U);
}

TEST(CutLiterals, OtherTextIsNone) {
  EXPECT_TRUE(hits("he was kil\nometres away").empty());
  EXPECT_TRUE(hits("killed\nby hand").empty());
  EXPECT_TRUE(hits("\n").empty());
  EXPECT_TRUE(hits("exit\n").empty());
}

TEST(CutLiterals, TheBudgetEndsTheSearch) {
  const CutLiterals literals(kLiterals);
  int64_t budget = 0;
  EXPECT_TRUE(literals.at("out of\nmemory", 6, budget).empty());
}

}  // namespace
}  // namespace oomscope
