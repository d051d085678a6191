// IndexIterator: goes through what has operator[] and size(), for range-for and the algorithms that go through once.
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace oomscope {

template <class Table>
class IndexIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using reference = decltype(std::declval<const Table&>()[size_t{0}]);
  using value_type = std::remove_cvref_t<reference>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;

  IndexIterator(const Table& table, size_t index) : table_(&table), index_(index) {}
  reference operator*() const { return (*table_)[index_]; }
  IndexIterator& operator++() {
    ++index_;
    return *this;
  }
  IndexIterator operator++(int) { return {*table_, index_++}; }
  bool operator==(const IndexIterator& other) const { return index_ == other.index_; }

 private:
  const Table* table_;
  size_t index_;
};

}  // namespace oomscope
