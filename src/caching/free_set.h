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
//   bits     one bit a non-empty class      [..1000001]  and a SizeClass a class
//
// lower_bound looks into the one class where size itself falls, then takes the first block of the next non-empty
// class: two count-trailing-zeros instead of a walk. A class is a short sorted array of its first blocks, which is all
// of them nearly always, and a red-black tree of the rest: so a class with many blocks of one size costs what any
// balanced tree costs, and the worst case stays logarithmic. Rows are made when first used (4 KiB each).
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

// The blocks whose sizes fall into one class, in order: the first few in an array, the others, all behind them, in a
// tree. The array is empty only if the class is. One cache line.
class alignas(64) SizeClass {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] Block* first() const { return front_[0]; }  // not if empty
  [[nodiscard]] Block* last() const { return has_rest() ? unconst(&*rest_->rbegin()) : front_[count_ - 1]; }

  void insert(Block& block) {
    if (count_ == 0) {  // three of four
      front_[0] = &block;
      count_ = 1;
      return;
    }
    uint32_t place = count_;
    while (place > 0 && Less{}(block, *front_[place - 1])) --place;
    if (place == kFront || (place == count_ && has_rest() && !Less{}(block, *rest_->begin()))) {
      insert_into_rest(block);
      return;
    }
    if (count_ == kFront) insert_into_rest(*front_[--count_]);
    for (uint32_t i = count_; i > place; --i) front_[i] = front_[i - 1];
    front_[place] = &block;
    ++count_;
  }

  // Returns the block behind it; nullptr if there is none.
  Block* erase(Block& block) {
    const uint32_t place = place_of(block);
    if (place == count_) return erase_from_rest(block);
    --count_;
    for (uint32_t i = place; i < count_; ++i) front_[i] = front_[i + 1];
    if (place < count_) return front_[place];
    return has_rest() ? refill(place) : nullptr;
  }

  // The first block of at least `size` bytes; nullptr if there is none.
  [[nodiscard]] Block* lower_bound(int64_t size) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (front_[i]->size >= size) return front_[i];
    }
    return has_rest() ? lower_bound_in_rest(size) : nullptr;
  }

  [[nodiscard]] Block* next(const Block& block) const {
    const uint32_t place = place_of(block);
    if (place + 1 < count_) return front_[place + 1];
    return has_rest() ? next_in_rest(block, place) : nullptr;
  }

  [[nodiscard]] Block* previous(const Block& block) const {
    const uint32_t place = place_of(block);
    if (place < count_) return place == 0 ? nullptr : front_[place - 1];
    auto here = rest_->iterator_to(block);
    return here != rest_->begin() ? unconst(&*--here) : front_[count_ - 1];
  }

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
  using Tree = boost::intrusive::multiset<Block, BlockHook, boost::intrusive::compare<Less>,
                                          boost::intrusive::constant_time_size<false>>;
  static constexpr uint32_t kFront = 6;

  static Block* unconst(const Block* block) { return const_cast<Block*>(block); }  // the set does not own its blocks

  // Where in the array the block is; count_ if it is in the tree.
  [[nodiscard]] uint32_t place_of(const Block& block) const {
    uint32_t place = 0;
    while (place < count_ && front_[place] != &block) ++place;
    return place;
  }

  [[nodiscard]] bool has_rest() const { return rest_ != nullptr && !rest_->empty(); }

  // The tree is rarely needed: kept out of its callers, which would run out of registers with it.
  [[gnu::noinline]] void insert_into_rest(Block& block) {
    if (rest_ == nullptr) rest_ = std::make_unique<Tree>();
    rest_->insert(block);
  }
  [[gnu::noinline]] Block* erase_from_rest(Block& block) {
    auto following = rest_->erase(rest_->iterator_to(block));
    return following != rest_->end() ? &*following : nullptr;
  }
  [[gnu::noinline]] [[nodiscard]] Block* lower_bound_in_rest(int64_t size) const {
    auto found = rest_->lower_bound(size, SizeLess{});
    return found != rest_->end() ? unconst(&*found) : nullptr;
  }
  [[gnu::noinline]] [[nodiscard]] Block* next_in_rest(const Block& block, uint32_t place) const {
    auto following = place == count_ ? ++rest_->iterator_to(block) : rest_->begin();
    return following != rest_->end() ? unconst(&*following) : nullptr;
  }
  // The last block of the array is gone, which was at `place`: some of the rest, if none is left. Returns the next.
  [[gnu::noinline]] Block* refill(uint32_t place) {
    if (place > 0) return &*rest_->begin();
    while (count_ < kFront / 2 && has_rest()) {
      front_[count_++] = &*rest_->begin();
      rest_->erase(rest_->begin());
    }
    return front_[0];
  }

  std::array<Block*, kFront> front_{};
  uint32_t count_ = 0;
  std::unique_ptr<Tree> rest_;  // made when first needed
};

class FreeSet {
 public:
  FreeSet() = default;
  FreeSet(const FreeSet&) = delete;
  FreeSet& operator=(const FreeSet&) = delete;

  void insert(Block& block) {
    const uint32_t index = class_of(block.size);
    const uint32_t row = index / 64;
    if (rows_[row] == nullptr) make_row(row);
    (*rows_[row])[index % 64].insert(block);
    row_bits_[row] |= uint64_t{1} << (index % 64);
    bits_ |= uint64_t{1} << row;
  }

  // Returns the block behind it if that is of its class, which all blocks of its size are; else nullptr.
  Block* erase(Block& block) {
    const uint32_t index = class_of(block.size);
    const uint32_t row = index / 64;
    SizeClass& blocks = (*rows_[row])[index % 64];
    Block* following = blocks.erase(block);
    if (!blocks.empty()) return following;
    row_bits_[row] &= ~(uint64_t{1} << (index % 64));
    if (row_bits_[row] == 0) bits_ &= ~(uint64_t{1} << row);
    return nullptr;
  }

  // The first block of at least `size` bytes; nullptr if there is none.
  [[nodiscard]] Block* lower_bound(int64_t size) const {
    const uint32_t index = class_of(size);
    if ((row_bits_[index / 64] >> (index % 64) & 1) != 0) {
      if (Block* found = class_at(index).lower_bound(size)) return found;
    }
    return first_above(index);
  }

  [[nodiscard]] Block* next(const Block& block) const {
    const uint32_t index = class_of(block.size);
    Block* following = class_at(index).next(block);
    return following != nullptr ? following : first_above(index);
  }

  [[nodiscard]] Block* first() const {
    return bits_ == 0 ? nullptr : first_in_row(static_cast<uint32_t>(std::countr_zero(bits_)), ~uint64_t{0});
  }

  [[nodiscard]] Block* last() const { return last_below(kRows * 64); }

  [[nodiscard]] Block* previous(const Block& block) const {
    const uint32_t index = class_of(block.size);
    Block* before = class_at(index).previous(block);
    return before != nullptr ? before : last_below(index);
  }

  [[nodiscard]] bool empty() const { return bits_ == 0; }

 private:
  using Row = std::array<SizeClass, 64>;
  static constexpr uint32_t kRows = 56;  // sizes below 2^63 need 50

  [[gnu::noinline]] void make_row(uint32_t row) { rows_[row] = std::make_unique<Row>(); }

  [[nodiscard]] const SizeClass& class_at(uint32_t index) const { return (*rows_[index / 64])[index % 64]; }

  [[nodiscard]] static uint32_t class_of(int64_t size) {
    const uint64_t units = static_cast<uint64_t>(size) >> 9;
    const uint32_t shift = static_cast<uint32_t>(std::bit_width(units | 64)) - 7;  // 0 in the first two rows
    return shift * 64 + static_cast<uint32_t>(units >> shift);
  }

  [[nodiscard]] Block* first_in_row(uint32_t row, uint64_t mask) const {
    const uint64_t bits = row_bits_[row] & mask;
    if (bits == 0) return nullptr;
    return (*rows_[row])[static_cast<size_t>(std::countr_zero(bits))].first();
  }

  [[nodiscard]] Block* first_above(uint32_t index) const {
    const uint32_t row = index / 64;
    const uint64_t above = index % 64 == 63 ? 0 : ~uint64_t{0} << (index % 64 + 1);
    if ((bits_ >> row & 1) != 0 && above != 0) {
      if (Block* block = first_in_row(row, above)) return block;
    }
    const uint64_t rows = bits_ & (~uint64_t{0} << row) & ~(uint64_t{1} << row);
    return rows == 0 ? nullptr : first_in_row(static_cast<uint32_t>(std::countr_zero(rows)), ~uint64_t{0});
  }

  [[nodiscard]] Block* last_below(uint32_t index) const {
    const uint32_t row = index / 64;
    const uint64_t below = (uint64_t{1} << (index % 64)) - 1;
    if (row < kRows && (bits_ >> row & 1) != 0 && (row_bits_[row] & below) != 0) return last_in_row(row, below);
    const uint64_t rows = bits_ & ((uint64_t{1} << row) - 1);
    return rows == 0 ? nullptr : last_in_row(static_cast<uint32_t>(std::bit_width(rows)) - 1, ~uint64_t{0});
  }

  [[nodiscard]] Block* last_in_row(uint32_t row, uint64_t mask) const {
    const uint64_t bits = row_bits_[row] & mask;
    return (*rows_[row])[static_cast<size_t>(std::bit_width(bits)) - 1].last();
  }

  uint64_t bits_ = 0;
  std::array<uint64_t, kRows> row_bits_{};
  std::array<std::unique_ptr<Row>, kRows> rows_;
};

}  // namespace oomscope
