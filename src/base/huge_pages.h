// HugeVector: a vector for large tables, in huge pages where the system has them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace oomscope {

// Note [First touch]
//
// Writing to a fresh 4 KiB page costs about 2 us under virtualisation (44 MB: 24 ms, measured), more than decoding the
// 50 events that it holds. With 2 MiB pages the same memory takes 6 ms. The system makes a huge page only where nothing
// of its 2 MiB was touched before the advice: so we map them ourselves, since malloc writes its own bytes first.
// Small tables come from malloc as ever.
template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>&) {}

  [[nodiscard]] T* allocate(size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    const size_t bytes = count * sizeof(T);
    if (bytes < kLeastMapped) return static_cast<T*>(::operator new(bytes));
    return static_cast<T*>(map(rounded(bytes)));
  }
  void deallocate(T* start, size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kLeastMapped) return ::operator delete(start);
    (void)munmap(start, rounded(bytes));
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

 private:
  static constexpr size_t kHuge = size_t{2} << 20;
  static constexpr size_t kLeastMapped = kHuge / 2;

  static size_t rounded(size_t bytes) { return (bytes + kHuge - 1) / kHuge * kHuge; }

  // Older systems (before Linux 6.7) do not align by themselves, so we map too much and give back the edges.
  static void* map(size_t bytes) {
    void* mapped = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    uint8_t* begin = static_cast<uint8_t*>(mapped);
    const size_t front = (kHuge - reinterpret_cast<uintptr_t>(mapped) % kHuge) % kHuge;
    if (front > 0) (void)munmap(begin, front);
    (void)munmap(begin + front + bytes, kHuge - front);
    (void)madvise(begin + front, bytes, MADV_HUGEPAGE);  // advice: no harm where it fails
    return begin + front;
  }
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace oomscope
