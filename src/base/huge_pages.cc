// Note [First touch]
//
// Writing to a fresh 4 KiB page costs about 2 us under virtualisation, more than decoding the 50 events that it holds:
// 60 MiB take 35 ms. In 2 MiB pages they take 7. The system makes a huge page only where nothing of its 2 MiB was
// touched before the advice: so we map them ourselves, since malloc writes its own bytes first.
//
// That is on memory which the host has not taken back meanwhile; where it has, a huge page is dear too (60 MiB: 150
// ms), and nothing tells the guest. (AMD EPYC, Linux 6.18.)
#include "base/huge_pages.h"

#include <sys/mman.h>

namespace oomscope {
namespace {

constexpr size_t kHuge = size_t{2} << 20;

size_t rounded(size_t bytes) { return (bytes + kHuge - 1) / kHuge * kHuge; }

}  // namespace

// Older systems (before Linux 6.7) do not align by themselves, so we map too much and give back the edges.
void* map_pages(size_t bytes) {
  bytes = rounded(bytes);
  void* mapped = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  uint8_t* begin = static_cast<uint8_t*>(mapped);
  const size_t front = (kHuge - reinterpret_cast<uintptr_t>(mapped) % kHuge) % kHuge;
  if (front > 0) (void)munmap(begin, front);
  begin += front;
  (void)munmap(begin + bytes, kHuge - front);
  (void)madvise(begin, bytes, MADV_HUGEPAGE);  // advice: no harm where it fails
  return begin;
}

void unmap_pages(void* start, size_t bytes) { (void)munmap(start, rounded(bytes)); }

}  // namespace oomscope
