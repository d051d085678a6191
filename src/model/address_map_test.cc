#include "model/address_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace oomscope {
namespace {

TEST(AddressMap, KnowsNothingAtFirst) {
  AddressMap map;
  EXPECT_EQ(map.find(0), nullptr);
  EXPECT_EQ(map.find(512), nullptr);
}

TEST(AddressMap, AddressZeroIsAnAddress) {
  AddressMap map;
  map.set(0, 7);
  ASSERT_NE(map.find(0), nullptr);
  EXPECT_EQ(*map.find(0), 7u);
}

TEST(AddressMap, LaterValueReplacesTheEarlier) {
  AddressMap map;
  map.set(512, 1);
  map.set(512, 2);
  EXPECT_EQ(*map.find(512), 2u);
}

TEST(AddressMap, EqualsAnOrdinaryMapWhileItGrows) {
  AddressMap map(1);
  std::unordered_map<uint64_t, uint32_t> expected;
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 20000; ++i) {
    const uint64_t address = 0x7f0000000000 + random() % 9000 * 512;
    map.set(address, i);
    expected[address] = i;
  }
  for (const auto& [address, value] : expected) {
    ASSERT_NE(map.find(address), nullptr);
    ASSERT_EQ(*map.find(address), value);
  }
  EXPECT_EQ(map.find(0x7f0000000000 + 9000 * 512), nullptr);
}

}  // namespace
}  // namespace oomscope
