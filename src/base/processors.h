// For two threads that work in step, each on a processor of its own.
//
// Threads that wait for each other for microseconds at a time must not sleep: under virtualisation, waking a processor
// takes longer than the work did. And the scheduler may leave both on one processor for tens of milliseconds, with
// another idle. Measured on a recording of a million events (`show`, AMD EPYC, two processors): 65 to 73 ms in the
// median with sleep, 57 without.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace oomscope {

// The one that the calling thread is on; -1: not known.
inline int this_processor() { return sched_getcpu(); }

// From now on `thread`, which must not be able to end meanwhile, runs elsewhere, if it may. One that was just made
// often waits behind its maker until the next tick of the clock, with another processor idle: 4 ms in two of three
// cases (Linux 6.18, two processors), which this makes 0.1.
inline void keep_off(pthread_t thread, int processor) {
  cpu_set_t allowed;
  if (processor < 0 || processor >= CPU_SETSIZE) return;
  if (pthread_getaffinity_np(thread, sizeof allowed, &allowed) != 0) return;
  CPU_CLR(static_cast<unsigned>(processor), &allowed);
  if (CPU_COUNT(&allowed) > 0) (void)pthread_setaffinity_np(thread, sizeof allowed, &allowed);
}

// Those that the calling thread may use; empty: not known.
inline std::optional<cpu_set_t> allowed_processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  return allowed;
}
inline void allow_processors(const std::optional<cpu_set_t>& allowed) {
  if (allowed) (void)sched_setaffinity(0, sizeof *allowed, &*allowed);
}

// May the process use more than one? The machine may have more than it may use (taskset), and the calling thread may
// have left all but one: so the first thread is asked.
inline bool has_several_processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(getpid(), sizeof allowed, &allowed) != 0) return std::thread::hardware_concurrency() > 1;
  return CPU_COUNT(&allowed) > 1;
}

// Asks again and again until `holds()` is true, for at most a few hundred microseconds: then false, and it is time to
// sleep. With one processor it asks once, since nothing can come of waiting.
template <class Condition>
bool spin_until(const Condition& holds) {
  static const bool has_several = has_several_processors();
  if (!has_several) return holds();
  constexpr std::chrono::microseconds kMost{300};
  const auto end = std::chrono::steady_clock::now() + kMost;
  do {
    constexpr int kBetweenClocks = 32;
    for (int i = 0; i < kBetweenClocks; ++i) {
      if (holds()) return true;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace oomscope
