#include "evidence/stack_interner.h"

#include <gtest/gtest.h>

#include <array>

namespace oomscope {
namespace {

TEST(StackInterner, EqualFramesAndStacksAreOne) {
  StackTable table;
  StackInterner interner(table);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 2000; ++i) {
      EXPECT_EQ(interner.intern_frame(Frame{.name = StringId{i}, .filename = StringId{7}, .line = i / 2}), i);
      std::array<uint32_t, 3> frames = {i, 0, i};
      EXPECT_EQ(interner.intern_stack(frames), StackId{i + 1});
    }
  }
  EXPECT_EQ(table.frames.size(), 2000U);
  EXPECT_EQ(table.size(), 2001U);
}

TEST(StackInterner, TheEmptyStackIsIdZero) {
  StackTable table;
  StackInterner interner(table);
  EXPECT_EQ(interner.intern_stack({}), StackId::none);
  EXPECT_EQ(table.size(), 1U);
}

}  // namespace
}  // namespace oomscope
