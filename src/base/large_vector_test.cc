#include "base/large_vector.h"

#include <gtest/gtest.h>

#include <numeric>

namespace oomscope {
namespace {

constexpr size_t kLarge = size_t{1} << 20;  // of four bytes: in pages of its own

TEST(TouchAhead, GoesThroughTheRoomAndChangesNothing) {
  LargeVector<uint32_t> table;
  table.reserve(kLarge);
  table.resize(kLarge / 2);
  std::iota(table.begin(), table.end(), 1U);
  TouchAhead ahead;
  int pieces = 0;
  while (ahead.touch(spare_room(table))) ASSERT_LT(++pieces, 100);
  EXPECT_GT(pieces, 0);
  while (table.size() < kLarge) {  // on and on, as the table grows
    table.resize(std::min(kLarge, table.size() + 30000), 7);
    while (ahead.touch(spare_room(table))) ASSERT_LT(++pieces, 100);
  }
  EXPECT_FALSE(ahead.touch(spare_room(table)));
  for (size_t i = 0; i < kLarge / 2; ++i) ASSERT_EQ(table[i], i + 1);
  for (size_t i = kLarge / 2; i < kLarge; ++i) ASSERT_EQ(table[i], 7U);
}

TEST(TouchAhead, HasNothingToDoWhereThereIsNoRoom) {
  TouchAhead ahead;
  EXPECT_FALSE(ahead.touch({}));
  LargeVector<uint32_t> small(10, 3);
  EXPECT_FALSE(ahead.touch(spare_room(small)));
  touch_pages({});
  touch_pages(std::as_bytes(std::span(small)));
  EXPECT_EQ(small, (LargeVector<uint32_t>(10, 3)));
}

}  // namespace
}  // namespace oomscope
