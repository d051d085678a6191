// NarrowColumn: a column of integers of 64 bits that mostly lie near each other, in four bytes each.
//
// Most are kept as their distance from a base, in units. The few that are too far for that, or between two units, stand
// in a table of their own; where that is full, the column becomes wide. It looks the same from outside.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/index_iterator.h"
#include "base/large_vector.h"

namespace oomscope {

// Where the base is: 0, or so that the first value that is not near 0 is in the middle of what is near. (Traces may
// begin with an entry that has no address.)
enum class NarrowBase { zero, first };

template <class T, unsigned kUnitBits, NarrowBase kBase>
class NarrowColumn {
  static_assert(sizeof(T) == sizeof(uint64_t));
  static constexpr uint32_t kFar = 0xffffffff;
  static constexpr uint64_t kUnit = uint64_t{1} << kUnitBits;
  static constexpr uint64_t kReach = uint64_t{kFar} << kUnitBits;  // what is nearer to the base than that is near
  using Far = std::pair<size_t, T>;                                // index, value

 public:
  static constexpr size_t kMostFar = 1024;

  // What is there at present, for another thread: it stays as it is while the column grows within its room().
  class View {
   public:
    View() = default;
    [[nodiscard]] T operator[](size_t index) const {
      return wide_ != nullptr ? wide_[index] : value_of(base_, narrow_[index], {far_, far_count_}, index);
    }

   private:
    friend class NarrowColumn;
    const uint32_t* narrow_ = nullptr;
    const T* wide_ = nullptr;
    const Far* far_ = nullptr;
    size_t far_count_ = 0;
    uint64_t base_ = 0;
  };

  NarrowColumn() = default;
  NarrowColumn(std::initializer_list<T> values) { append({values.begin(), values.size()}); }

  [[nodiscard]] size_t size() const { return is_wide_ ? wide_.size() : narrow_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] T operator[](size_t index) const {
    return is_wide_ ? wide_[index] : value_of(base_, narrow_[index], far_, index);
  }
  [[nodiscard]] IndexIterator<NarrowColumn> begin() const { return {*this, 0}; }
  [[nodiscard]] IndexIterator<NarrowColumn> end() const { return {*this, size()}; }

  [[nodiscard]] bool is_wide() const { return is_wide_; }
  // Is no value far, so that all are at most most_near()?
  [[nodiscard]] bool are_all_near() const { return !is_wide_ && far_.empty(); }
  [[nodiscard]] uint64_t most_near() const { return base_ > UINT64_MAX - kReach ? UINT64_MAX : base_ + kReach; }
  // How many more it surely takes without moving.
  [[nodiscard]] size_t room() const {
    if (is_wide_) return wide_.capacity() - wide_.size();
    if (far_.capacity() < kMostFar) return 0;
    return std::min(narrow_.capacity() - narrow_.size(), kMostFar - far_.size());
  }
  // Room for `count` values altogether, the next `at_once` of which may all be far.
  void reserve(size_t count, size_t at_once = 0) {
    if (!is_wide_ && far_.size() + at_once > kMostFar) widen(count);
    if (is_wide_) {
      wide_.reserve(count);
    } else {
      narrow_.reserve(count);
      if (at_once > 0) far_.reserve(kMostFar);
    }
  }

  [[nodiscard]] std::span<const std::byte> spare() const { return is_wide_ ? spare_room(wide_) : spare_room(narrow_); }

  void push_back(T value) { append({&value, 1}); }
  void append(std::span<const T> values) {
    if (values.empty()) return;
    const size_t before = size();
    if (!is_wide_) {
      if (!has_base_) choose_base(values);
      narrow_.resize(before + values.size());
      uint32_t* narrow = narrow_.data() + before;
      bool are_near = has_base_;
      for (size_t i = 0; i < values.size(); ++i) {
        const uint64_t distance = static_cast<uint64_t>(values[i]) - base_;
        narrow[i] = static_cast<uint32_t>(distance >> kUnitBits);
        are_near &= is_near_at(distance);
      }
      if (are_near || takes_far(values, before)) return;
      narrow_.resize(before);
      widen(before + values.size());
    }
    wide_.insert(wide_.end(), values.begin(), values.end());
  }
  void set(size_t index, T value) {
    if (!is_wide_ && is_near(value)) {
      narrow_[index] = static_cast<uint32_t>((static_cast<uint64_t>(value) - base_) >> kUnitBits);
      return;
    }
    if (!is_wide_) widen(size());
    wide_[index] = value;
  }

  [[nodiscard]] View view() const {
    View view;
    view.narrow_ = narrow_.data();
    view.wide_ = is_wide_ ? wide_.data() : nullptr;
    view.far_ = far_.data();
    view.far_count_ = far_.size();
    view.base_ = base_;
    return view;
  }
  bool operator==(const NarrowColumn& other) const {
    return size() == other.size() && std::equal(begin(), end(), other.begin());
  }

 private:
  static bool is_near_at(uint64_t distance) { return distance < kReach && distance % kUnit == 0; }
  [[nodiscard]] bool is_near(T value) const { return has_base_ && is_near_at(static_cast<uint64_t>(value) - base_); }
  static T value_of(uint64_t base, uint32_t units, std::span<const Far> far, size_t index) {
    return units != kFar ? static_cast<T>(base + (uint64_t{units} << kUnitBits)) : far_value(far, index);
  }
  // Until there is a base, all are far: what a view shows does not change with it.
  void choose_base(std::span<const T> values) {
    for (const T value : values) {
      const uint64_t first = static_cast<uint64_t>(value);
      if (first < kReach / 2) continue;
      base_ = (first - kReach / 2) / kUnit * kUnit;
      has_base_ = true;
      return;
    }
  }
  [[gnu::noinline]] static T far_value(std::span<const Far> far, size_t index) {
    return std::lower_bound(far.begin(), far.end(), index,
                            [](const Far& entry, size_t wanted) { return entry.first < wanted; })
        ->second;
  }

  // Those that are not near go into the table. False: it cannot take them all.
  [[gnu::noinline]] bool takes_far(std::span<const T> values, size_t before) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_near(values[i])) continue;
      if (far_.size() == kMostFar) return false;
      if (far_.capacity() < kMostFar) far_.reserve(kMostFar);
      far_.emplace_back(before + i, values[i]);
      narrow_[before + i] = kFar;
    }
    return true;
  }

  [[gnu::noinline]] void widen(size_t capacity) {
    wide_.reserve(std::max(capacity, narrow_.capacity()));
    for (size_t i = 0; i < narrow_.size(); ++i) wide_.push_back((*this)[i]);
    is_wide_ = true;
    narrow_ = {};
    far_ = {};
  }

  LargeVector<uint32_t> narrow_;
  LargeVector<T> wide_;
  std::vector<Far> far_;  // ascending
  uint64_t base_ = 0;
  bool has_base_ = kBase == NarrowBase::zero;
  bool is_wide_ = false;
};

// Of blocks and segments: multiples of 512 that lie within two tebibytes.
using AddressColumn = NarrowColumn<uint64_t, 9, NarrowBase::first>;
// Of requests and segments: below four gibibytes.
using SizeColumn = NarrowColumn<int64_t, 0, NarrowBase::zero>;

}  // namespace oomscope
