#include "types/snapshot.h"

#include <gtest/gtest.h>

#include <string>

namespace oomscope {
namespace {

TEST(StringTable, EmptyTextIsIdZero) {
  StringTable strings;
  EXPECT_EQ(strings.intern(""), StringId::none);
  EXPECT_EQ(strings.text(StringId::none), "");
  EXPECT_EQ(strings.size(), 1U);
}

TEST(StringTable, EqualTextsAreOneId) {
  StringTable strings;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5000; ++i) {
      EXPECT_EQ(strings.intern("text " + std::to_string(i)), StringId{static_cast<uint32_t>(i + 1)});
    }
  }
  EXPECT_EQ(strings.size(), 5001U);
  EXPECT_EQ(strings.text(StringId{4711}), "text 4710");
}

TEST(StringTable, KeepsBytesThatAreNoText) {
  StringTable strings;
  std::string bytes("\xff\0\x80zero", 7);
  EXPECT_EQ(strings.text(strings.intern(bytes)), bytes);
  EXPECT_NE(strings.intern(std::string(8, '\0')), strings.intern(std::string(9, '\0')));
}

TEST(StringTable, AnUnknownIdReadsAsEmpty) {
  StringTable strings;
  EXPECT_EQ(strings.text(StringId{77}), "");
}

}  // namespace
}  // namespace oomscope
