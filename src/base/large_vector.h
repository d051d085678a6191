// LargeVector: a vector for large tables. Room that nobody writes to costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace oomscope {

// Zeros of at least `bytes`, in whole pages of their own. Throws std::bad_alloc. See Note [First touch].
[[nodiscard]] void* map_pages(size_t bytes);
void unmap_pages(void* start, size_t bytes);
// Makes the whole pages in it present, as writing to each would, but cheaper. They stay as they are. Before Linux 5.14
// nothing happens.
void touch_pages(std::span<const std::byte> room);

// Small tables come from malloc as ever.
template <class T>
struct PageAllocator {
  using value_type = T;

  PageAllocator() = default;
  template <class U>
  explicit PageAllocator(const PageAllocator<U>&) {}

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
  bool operator==(const PageAllocator&) const = default;
};

template <class T>
using LargeVector = std::vector<T, PageAllocator<T>>;

// What is there beyond the end, up to the capacity.
template <class T>
[[nodiscard]] std::span<const std::byte> spare_room(const LargeVector<T>& vector) {
  return std::as_bytes(std::span(vector.data() + vector.size(), vector.capacity() - vector.size()));
}

// Touches the pages of a growing table before its owner writes to them: for a thread that has time.
class TouchAhead {
 public:
  // Some of the pages at the front of `room`, which need not be there any more. False: all near ones are touched.
  bool touch(std::span<const std::byte> room);

 private:
  uintptr_t until_ = 0;
};

}  // namespace oomscope
