// Note [First touch]
//
// Writing to a fresh page of 4 KiB costs 1.1 to 2 us under virtualisation, more than decoding the 50 events that it
// holds. So tables are narrow, what nobody asks for is not kept, and zeros are not written.
//
// Huge pages are not asked for. Where memory is at hand they take a third of the time (45 MiB: 6 ms, in small pages
// 18); on a virtual machine whose host has taken back what was free they take four times as long (77 ms, small ones 18
// still), and nothing tells beforehand: asking for one and giving up costs 5 ms.
#include "base/large_vector.h"

#include <sys/mman.h>

#include <algorithm>

namespace oomscope {
namespace {

constexpr uintptr_t kPage = 4096;

}  // namespace

void* map_pages(size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return mapped;
}

void unmap_pages(void* start, size_t bytes) { (void)munmap(start, bytes); }

void touch_pages(std::span<const std::byte> room) {
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(room.data()) + kPage - 1) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(room.data() + room.size()) / kPage * kPage;
#ifdef MADV_POPULATE_WRITE
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
}

bool TouchAhead::touch(std::span<const std::byte> room) {
  constexpr uintptr_t kStep = uintptr_t{64} << 10;  // 20 us
  constexpr uintptr_t kAhead = 4 * kStep;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(room.data()) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(room.data() + room.size()) / kPage * kPage;
  if (until_ < begin || until_ > end) until_ = begin;
  const uintptr_t next = std::min(until_ + kStep, end);
  if (next <= until_ || next > begin + kAhead) return false;
  touch_pages({reinterpret_cast<const std::byte*>(until_), next - until_});
  until_ = next;
  return true;
}

}  // namespace oomscope
