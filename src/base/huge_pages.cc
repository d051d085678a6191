// Note [First touch]
//
// Writing to a fresh 4 KiB page costs about 2 us under virtualisation, more than decoding the 50 events that it holds:
// 60 MiB take 35 ms. In 2 MiB pages they take 7. The system makes a huge page only where nothing of its 2 MiB was
// touched before the advice: so we map them ourselves, since malloc writes its own bytes first.
//
// That is on memory which the host has not taken back meanwhile; where it has, 60 MiB in huge pages take 150 ms, and
// small pages, which come from what is left over of others, still 35. Nothing but the clock tells: so the first page of
// each table is touched at once, and after one that was slow no huge pages are asked for. (AMD EPYC, Linux 6.18.)
#include "base/huge_pages.h"

#include <sys/mman.h>

#include <atomic>
#include <ctime>

namespace oomscope {
namespace {

constexpr size_t kHuge = size_t{2} << 20;
constexpr int64_t kSlowNs = 1'000'000;  // a huge page takes 200 us, or 2 to 5 ms; its 512 small ones 800 us

std::atomic<bool> are_dear = false;  // of the machine, so all of the process may know

size_t rounded(size_t bytes) { return (bytes + kHuge - 1) / kHuge * kHuge; }

// Of this thread: what others do meanwhile does not count.
int64_t processor_ns() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Both are advice: no harm where it is not taken.
void ask_for_huge_pages(uint8_t* begin, size_t bytes) {
  if (are_dear.load(std::memory_order_relaxed)) {
    (void)madvise(begin, bytes, MADV_NOHUGEPAGE);
    return;
  }
  (void)madvise(begin, bytes, MADV_HUGEPAGE);
  const int64_t start = processor_ns();
  *static_cast<volatile uint8_t*>(begin) = 0;
  if (processor_ns() - start < kSlowNs) return;
  are_dear.store(true, std::memory_order_relaxed);
  (void)madvise(begin, bytes, MADV_NOHUGEPAGE);
}

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
  ask_for_huge_pages(begin, bytes);
  return begin;
}

void unmap_pages(void* start, size_t bytes) { (void)munmap(start, rounded(bytes)); }

}  // namespace oomscope
