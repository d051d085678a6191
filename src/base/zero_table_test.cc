#include "base/zero_table.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace oomscope {
namespace {

constexpr size_t kFew = 10;
constexpr size_t kMany = size_t{1} << 20;  // in pages of their own

TEST(ZeroTable, IsZeroHoweverLarge) {
  for (const size_t size : {kFew, kMany}) {
    const ZeroTable<uint32_t> table(size);
    ASSERT_EQ(table.size(), size);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(table[i], 0U);
  }
}

TEST(ZeroTable, KeepsWhatWasWrittenAndAddsZeros) {
  ZeroTable<uint32_t> table(kFew);
  table[3] = 7;
  table.resize(2 * kFew);
  table[2 * kFew - 1] = 8;
  table.resize(kMany);
  EXPECT_EQ(table[3], 7U);
  EXPECT_EQ(table[2 * kFew - 1], 8U);
  EXPECT_EQ(table[2 * kFew], 0U);
  EXPECT_EQ(table[kMany - 1], 0U);
  table.resize(5);
  EXPECT_EQ(table[3], 7U);
  EXPECT_EQ(table.size(), 5U);
}

TEST(ZeroTable, MovesWithoutCopying) {
  ZeroTable<uint32_t> table(kFew);
  table[1] = 5;
  const uint32_t* data = table.data();
  ZeroTable<uint32_t> other = std::move(table);
  EXPECT_EQ(other.data(), data);
  ZeroTable<uint32_t> third;
  third = std::move(other);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third[1], 5U);
}

TEST(ZeroTable, CopiesAndTouchesWithoutChange) {
  for (const size_t size : {kFew, kMany}) {
    ZeroTable<uint32_t> table(size);
    table[1] = 5;
    table.touch(0, size);
    const ZeroTable<uint32_t> copy = table;
    table[1] = 6;
    EXPECT_EQ(copy[1], 5U);
    for (size_t i = 2; i < size; ++i) ASSERT_EQ(copy[i], 0U);
  }
}

TEST(ZeroTable, RefusesWhatNoMemoryHolds) {
  ZeroTable<uint32_t> table;
  EXPECT_THROW(table.resize(SIZE_MAX / 2), std::bad_alloc);
  EXPECT_EQ(table.size(), 0U);
}

}  // namespace
}  // namespace oomscope
