#include "caching/free_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace oomscope {
namespace {

// Blocks of the given sizes, in address order.
std::vector<Block> blocks_of(const std::vector<int64_t>& sizes) {
  std::vector<Block> blocks(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    blocks[i].size = sizes[i];
    blocks[i].address = 4096 * (i + 1);
  }
  return blocks;
}

TEST(FreeSet, EmptySetHasNothing) {
  const FreeSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.first(), nullptr);
  EXPECT_EQ(set.last(), nullptr);
  EXPECT_EQ(set.lower_bound(512), nullptr);
}

TEST(FreeSet, LowerBoundIsTheSmallestThatServes) {
  std::vector<Block> blocks = blocks_of({4096, 1024, 2048});
  FreeSet set;
  for (Block& block : blocks) set.insert(block);
  EXPECT_EQ(set.lower_bound(1025), &blocks[2]);
  EXPECT_EQ(set.lower_bound(4096), &blocks[0]);
  EXPECT_EQ(set.lower_bound(4097), nullptr);
}

TEST(FreeSet, EqualSizesGoByOrderThenAddress) {
  std::vector<Block> blocks = blocks_of({1024, 1024, 1024});
  blocks[0].order = 1;
  FreeSet set;
  for (Block& block : blocks) set.insert(block);
  EXPECT_EQ(set.lower_bound(1024), &blocks[1]);
  EXPECT_EQ(set.next(blocks[1]), &blocks[2]);
  EXPECT_EQ(set.next(blocks[2]), &blocks[0]);
}

// More of one size than a class holds in its array: the rest is in its tree, and comes forward as the array empties.
TEST(FreeSet, ManyOfOneSizeGoByAddress) {
  std::vector<Block> blocks = blocks_of(std::vector<int64_t>(40, 1024));
  FreeSet set;
  for (size_t i = 0; i < blocks.size(); ++i) set.insert(blocks[i * 7 % blocks.size()]);
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    EXPECT_EQ(set.next(blocks[i]), &blocks[i + 1]);
    EXPECT_EQ(set.previous(blocks[i + 1]), &blocks[i]);
  }
  EXPECT_EQ(set.last(), &blocks.back());
  for (Block& block : blocks) {
    EXPECT_EQ(set.lower_bound(1000), &block);
    EXPECT_EQ(set.erase(block), &block == &blocks.back() ? nullptr : &block + 1);
  }
  EXPECT_TRUE(set.empty());
}

TEST(FreeSet, SizesThatAreNoMultipleOf512KeepTheirOrder) {
  std::vector<Block> blocks = blocks_of({1001, 1000, 1500});
  FreeSet set;
  for (Block& block : blocks) set.insert(block);
  EXPECT_EQ(set.lower_bound(1), &blocks[1]);
  EXPECT_EQ(set.lower_bound(1001), &blocks[0]);
  EXPECT_EQ(set.lower_bound(1002), &blocks[2]);
}

// Sizes of every magnitude, many of them close together: all walks equal those of a sorted vector.
TEST(FreeSet, EqualsASortedVector) {
  std::mt19937_64 random(1);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 2000; ++i) {
    const int64_t magnitude = int64_t{512} << (random() % 36);
    sizes.push_back(magnitude + static_cast<int64_t>(random() % 70) * 512);
  }
  std::vector<Block> blocks = blocks_of(sizes);
  std::vector<Block*> sorted;
  FreeSet set;
  auto less = [](const Block* a, const Block* b) {
    return a->size != b->size ? a->size < b->size : a->address < b->address;
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    set.insert(blocks[i]);
    sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), &blocks[i], less), &blocks[i]);
    if (i % 3 != 2) continue;
    const size_t gone = random() % sorted.size();
    set.erase(*sorted[gone]);
    sorted.erase(sorted.begin() + static_cast<ptrdiff_t>(gone));
    const int64_t wanted = sizes[random() % sizes.size()] + static_cast<int64_t>(random() % 3) - 1;
    auto found = std::find_if(sorted.begin(), sorted.end(), [&](const Block* block) { return block->size >= wanted; });
    ASSERT_EQ(set.lower_bound(wanted), found == sorted.end() ? nullptr : *found);
  }
  std::vector<Block*> forward;
  for (Block* block = set.first(); block != nullptr; block = set.next(*block)) forward.push_back(block);
  EXPECT_EQ(forward, sorted);
  std::vector<Block*> backward;
  for (Block* block = set.last(); block != nullptr; block = set.previous(*block)) backward.push_back(block);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(backward, sorted);
  for (Block* block : sorted) set.erase(*block);
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace oomscope
