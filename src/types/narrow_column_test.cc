#include "types/narrow_column.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace oomscope {
namespace {

constexpr uint64_t kCard = 0x7f2200000000;  // where CUDA puts blocks
constexpr int64_t kGiB = int64_t{1} << 30;

// Addresses as a trace has them; one in `far_each` is of another kind.
std::vector<uint64_t> made_addresses(size_t count, size_t far_each) {
  std::mt19937_64 random(count + far_each);
  std::vector<uint64_t> values;
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = kCard + random() % (uint64_t{1} << 38) / 512 * 512;
    if (i % far_each == far_each - 1) {
      const uint64_t others[] = {0, random(), value + 1, value + (uint64_t{1} << 42), UINT64_MAX};
      value = others[random() % std::size(others)];
    }
    values.push_back(value);
  }
  return values;
}

template <class Column, class T>
void expect_holds(const Column& column, const std::vector<T>& values) {
  ASSERT_EQ(column.size(), values.size());
  const auto view = column.view();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(column[i], values[i]) << i;
    ASSERT_EQ(view[i], values[i]) << i;
  }
}

TEST(NarrowColumn, HoldsWhateverItIsGiven) {
  for (const size_t far_each : {100000U, 1000U, 7U, 1U}) {
    const std::vector<uint64_t> values = made_addresses(20000, far_each);
    AddressColumn one_by_one;
    AddressColumn in_pieces;
    for (size_t i = 0; i < values.size(); ++i) {
      one_by_one.push_back(values[i]);
      if (i % 256 == 0) in_pieces.append({&values[i], std::min<size_t>(256, values.size() - i)});
    }
    expect_holds(one_by_one, values);
    expect_holds(in_pieces, values);
    EXPECT_TRUE(one_by_one == in_pieces);
    EXPECT_EQ(one_by_one.are_all_near(), far_each > values.size());
    in_pieces.set(777, values[777] ^ 1);
    EXPECT_FALSE(one_by_one == in_pieces);
    in_pieces.set(777, values[777]);
    EXPECT_TRUE(one_by_one == in_pieces);
  }
}

TEST(NarrowColumn, TakesFourBytesEachWhileFewAreFar) {
  AddressColumn addresses;
  addresses.reserve(4000);
  for (const uint64_t value : made_addresses(4000, 10)) addresses.push_back(value);
  EXPECT_FALSE(addresses.is_wide());
  EXPECT_EQ(addresses.room(), 0U);
  EXPECT_EQ(addresses.spare().size(), 0U);
  SizeColumn sizes = {0, 1, kGiB, 4 * kGiB - 2};
  EXPECT_TRUE(sizes.are_all_near());
  EXPECT_GE(sizes.most_near(), uint64_t{4 * kGiB - 2});
  for (const int64_t size : {4 * kGiB - 1, int64_t{-1}, INT64_MIN}) {
    SizeColumn larger = sizes;
    larger.push_back(size);
    EXPECT_FALSE(larger.are_all_near());
    EXPECT_EQ(larger[4], size);
  }
}

TEST(NarrowColumn, AtTheEndOfTheAddressSpaceNearGoesAroundIt) {
  const AddressColumn column = {0xffffffffffe00000, 512, 0xffffff0000000000};
  EXPECT_TRUE(column.are_all_near());
  EXPECT_EQ(column.most_near(), UINT64_MAX);
  EXPECT_EQ(column[0], 0xffffffffffe00000);
  EXPECT_EQ(column[1], 512U);
  EXPECT_EQ(column[2], 0xffffff0000000000);
}

TEST(NarrowColumn, ThoseThatDoNotFitComeFirst) {
  std::vector<uint64_t> values = {3, 5};  // then addresses are far from the first
  for (const uint64_t value : made_addresses(3000, 5000)) values.push_back(value);
  AddressColumn column;
  for (const uint64_t value : values) column.push_back(value);
  expect_holds(column, values);
  EXPECT_FALSE(column.is_wide());  // the base is that of the addresses
}

// What a view shows stays as it is while the column grows within its room.
TEST(NarrowColumn, AViewStaysWhileThereIsRoom) {
  const std::vector<uint64_t> values = made_addresses(5000, 50);
  AddressColumn column;
  column.reserve(values.size(), 1);
  for (size_t i = 0; i < 1000; ++i) column.push_back(values[i]);
  const AddressColumn::View view = column.view();
  for (size_t i = 1000; i < values.size() && column.room() > 0; ++i) column.push_back(values[i]);
  EXPECT_EQ(column.size(), values.size());
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(view[i], values[i]) << i;
}

TEST(NarrowColumn, MakesRoomAlsoForThoseThatAreFar) {
  AddressColumn column;
  const std::vector<uint64_t> values = made_addresses(3 * AddressColumn::kMostFar, 2);
  for (size_t i = 0; i < values.size(); i += 64) {
    if (column.room() < 64) column.reserve(values.size(), 64);
    ASSERT_GE(column.room(), 64U);
    const AddressColumn::View before = column.view();
    column.append({&values[i], 64});
    if (i > 0) {
      ASSERT_EQ(before[i - 1], values[i - 1]);
    }
  }
  expect_holds(column, values);
}

}  // namespace
}  // namespace oomscope
