// HugeVector: a vector for large tables, in huge pages where they are cheap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace oomscope {

// Zeros of at least `bytes`, in whole pages of their own. Throws std::bad_alloc. See Note [First touch].
[[nodiscard]] void* map_pages(size_t bytes);
void unmap_pages(void* start, size_t bytes);

// Small tables come from malloc as ever.
template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>&) {}

  [[nodiscard]] T* allocate(size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(is_mapped(count) ? map_pages(count * sizeof(T)) : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* start, size_t count) {
    if (!is_mapped(count)) return ::operator delete(start);
    unmap_pages(start, count * sizeof(T));
  }
  // Is a table of that many in pages of its own? Those are zero at first.
  static bool is_mapped(size_t count) {
    constexpr size_t kLeastMapped = size_t{1} << 20;
    return count * sizeof(T) >= kLeastMapped;
  }
  // resize() without a value leaves new elements of plain types as they are: whoever resizes writes them all.
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
  bool operator==(const HugePageAllocator&) const = default;
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace oomscope
