// ZeroTable: a table of zeros, which are not written: of fresh pages only those cost anything that something else is
// written to (see Note [First touch] in large_vector.cc).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "base/large_vector.h"

namespace oomscope {

template <class T>
class ZeroTable {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroTable() = default;
  explicit ZeroTable(size_t size) { resize(size); }
  ZeroTable(const ZeroTable& other) : ZeroTable(other.size_) {
    if (size_ > 0) std::memcpy(values_, other.values_, size_ * sizeof(T));
  }
  ZeroTable(ZeroTable&& other) noexcept
      : values_(std::exchange(other.values_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroTable& operator=(ZeroTable other) noexcept {
    std::swap(values_, other.values_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroTable() { release(); }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] T* data() { return values_; }
  [[nodiscard]] T& operator[](size_t index) { return values_[index]; }
  [[nodiscard]] const T& operator[](size_t index) const { return values_[index]; }
  // Entries [first, last) will be written to.
  void touch(size_t first, size_t last) { touch_pages(std::as_bytes(std::span(values_ + first, last - first))); }
  // What is added is zero. Moves the table: nothing is kept in reserve.
  void resize(size_t size) {
    T* values = PageAllocator<T>().allocate(size);
    const size_t kept = std::min(size, size_);
    if (kept > 0) std::memcpy(values, values_, kept * sizeof(T));
    if (!PageAllocator<T>::is_mapped(size))
      std::memset(static_cast<void*>(values + kept), 0, (size - kept) * sizeof(T));
    release();
    values_ = values;
    size_ = size;
  }

 private:
  void release() {
    if (values_ != nullptr) PageAllocator<T>().deallocate(values_, size_);
  }

  T* values_ = nullptr;
  size_t size_ = 0;
};

}  // namespace oomscope
