// FreeSet: the free blocks of one pool and stream, ordered by size, then tie-break number, then address.
//
// PyTorch keeps one std::set a pool. Every malloc searches it, most mallocs take a block out and put a remainder
// back, every free puts one in: on millions of events the set *is* the cost. Two facts make it cheap. Sizes are
// multiples of 512 in practice, and few free blocks have nearly the same size. So a size maps to a class, finer for
// small sizes, and classes are monotone: whatever is in a higher class is larger.
//
//   units = size / 512        0 .. 63 one class each, then 64 classes for every doubling
//   class  = row * 64 + column
//   rows_    one bit a non-empty row        [..0100101]
//   row      one bit a non-empty class      [..1000001]  and a red-black tree of blocks a class
//
// lower_bound looks into the one tree where size itself falls, then takes the first block of the next non-empty
// class: two count-trailing-zeros instead of a walk. A class with many blocks of one size costs what any balanced
// tree costs, so the worst case stays logarithmic. Rows are made when first used (2 KiB each).
//
// Equal keys are possible: a damaged recording may hand out one address twice, hence multisets.
//
// Cost: bench/bench_engine.cc compares it with std::set under the same requests.
#pragma once

#include <array>
#include <bit>
#include <boost/intrusive/set.hpp>
#include <cstdint>
#include <memory>

#include "caching/block.h"

namespace oomscope {

class FreeSet {
 public:
  FreeSet() = default;
  FreeSet(const FreeSet&) = delete;
  FreeSet& operator=(const FreeSet&) = delete;

  void insert(Block& block) {
    const uint32_t index = class_of(block.size);
    const uint32_t row = index / 64;
    if (rows_[row] == nullptr) rows_[row] = std::make_unique<Row>();
    rows_[row]->trees[index % 64].insert(block);
    rows_[row]->bits |= uint64_t{1} << (index % 64);
    bits_ |= uint64_t{1} << row;
  }

  void erase(Block& block) {
    const uint32_t index = class_of(block.size);
    Row& row = *rows_[index / 64];
    Tree& tree = row.trees[index % 64];
    tree.erase(tree.iterator_to(block));
    if (!tree.empty()) return;
    row.bits &= ~(uint64_t{1} << (index % 64));
    if (row.bits == 0) bits_ &= ~(uint64_t{1} << (index / 64));
  }

  // The first block of at least `size` bytes; nullptr if there is none.
  [[nodiscard]] Block* lower_bound(int64_t size) const {
    const uint32_t index = class_of(size);
    const Row* row = rows_[index / 64].get();
    if (row != nullptr && (row->bits >> (index % 64) & 1) != 0) {
      const Tree& tree = row->trees[index % 64];
      auto found = tree.lower_bound(size, SizeLess{});
      if (found != tree.end()) return unconst(&*found);
    }
    return first_above(index);
  }

  [[nodiscard]] Block* next(const Block& block) const {
    const uint32_t index = class_of(block.size);
    const Tree& tree = rows_[index / 64]->trees[index % 64];
    auto following = ++tree.iterator_to(block);
    return following != tree.end() ? unconst(&*following) : first_above(index);
  }

  [[nodiscard]] Block* next_of_same_size(const Block& block) const {
    const uint32_t index = class_of(block.size);
    const Tree& tree = rows_[index / 64]->trees[index % 64];
    auto following = ++tree.iterator_to(block);
    return following != tree.end() && following->size == block.size ? unconst(&*following) : nullptr;
  }

  [[nodiscard]] Block* first() const {
    return bits_ == 0 ? nullptr : first_in_row(std::countr_zero(bits_), ~uint64_t{0});
  }

  [[nodiscard]] Block* last() const { return last_below(kRows * 64); }

  [[nodiscard]] Block* previous(const Block& block) const {
    const uint32_t index = class_of(block.size);
    const Tree& tree = rows_[index / 64]->trees[index % 64];
    auto here = tree.iterator_to(block);
    return here != tree.begin() ? unconst(&*--here) : last_below(index);
  }

  [[nodiscard]] bool empty() const { return bits_ == 0; }

 private:
  struct Less {
    bool operator()(const Block& a, const Block& b) const {
      if (a.size != b.size) return a.size < b.size;
      if (a.order != b.order) return a.order < b.order;
      return a.address < b.address;
    }
  };
  struct SizeLess {
    bool operator()(const Block& block, int64_t size) const { return block.size < size; }
    bool operator()(int64_t size, const Block& block) const { return size < block.size; }
  };
  using Tree =
      boost::intrusive::multiset<Block, boost::intrusive::compare<Less>, boost::intrusive::constant_time_size<false>>;
  struct Row {
    uint64_t bits = 0;
    std::array<Tree, 64> trees;
  };
  static constexpr uint32_t kRows = 56;  // sizes below 2^63 need 50

  static Block* unconst(const Block* block) { return const_cast<Block*>(block); }  // the set does not own its blocks

  [[nodiscard]] static uint32_t class_of(int64_t size) {
    const uint64_t units = static_cast<uint64_t>(size) >> 9;
    if (units < 64) return static_cast<uint32_t>(units);
    const uint32_t shift = static_cast<uint32_t>(std::bit_width(units)) - 7;
    return (shift + 1) * 64 + (static_cast<uint32_t>(units >> shift) - 64);
  }

  [[nodiscard]] Block* first_in_row(int row, uint64_t mask) const {
    const uint64_t bits = rows_[static_cast<size_t>(row)]->bits & mask;
    if (bits == 0) return nullptr;
    return unconst(&*rows_[static_cast<size_t>(row)]->trees[static_cast<size_t>(std::countr_zero(bits))].begin());
  }

  [[nodiscard]] Block* first_above(uint32_t index) const {
    const uint32_t row = index / 64;
    const uint64_t above = index % 64 == 63 ? 0 : ~uint64_t{0} << (index % 64 + 1);
    if ((bits_ >> row & 1) != 0 && above != 0) {
      if (Block* block = first_in_row(static_cast<int>(row), above)) return block;
    }
    const uint64_t rows = bits_ & (~uint64_t{0} << row) & ~(uint64_t{1} << row);
    return rows == 0 ? nullptr : first_in_row(std::countr_zero(rows), ~uint64_t{0});
  }

  [[nodiscard]] Block* last_below(uint32_t index) const {
    const uint32_t row = index / 64;
    const uint64_t below = (uint64_t{1} << (index % 64)) - 1;
    if (row < kRows && (bits_ >> row & 1) != 0 && (rows_[row]->bits & below) != 0) return last_in_row(row, below);
    const uint64_t rows = bits_ & ((uint64_t{1} << row) - 1);
    return rows == 0 ? nullptr : last_in_row(static_cast<uint32_t>(std::bit_width(rows)) - 1, ~uint64_t{0});
  }

  [[nodiscard]] Block* last_in_row(uint32_t row, uint64_t mask) const {
    const uint64_t bits = rows_[row]->bits & mask;
    return unconst(&*rows_[row]->trees[static_cast<size_t>(std::bit_width(bits)) - 1].rbegin());
  }

  uint64_t bits_ = 0;
  std::array<std::unique_ptr<Row>, kRows> rows_;
};

}  // namespace oomscope
