// Runs `count` independent jobs on a few threads. Results go where the job puts them, by index.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace oomscope {

// Fewer threads serve where the system gives no more. What a job throws (memory ran out) ends the others and is thrown
// here, from the caller's thread.
inline void run_parallel(size_t count, int threads, const std::function<void(size_t)>& job,
                         const std::function<void(size_t, size_t)>& progress = {}) {
  std::atomic<size_t> next{0};
  size_t done = 0;
  std::exception_ptr thrown;
  std::mutex lock;
  auto work = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) {
        job(i);
        const std::lock_guard<std::mutex> guard(lock);
        ++done;
        if (progress) progress(done, count);
      }
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> guard(lock);
      if (!thrown) thrown = std::current_exception();
    }
  };
  // Each begins on another processor than this one, and may run anywhere then.
  const std::optional<cpu_set_t> allowed = allowed_processors();
  std::atomic<bool> are_placed = false;
  const auto begin = [&] {
    are_placed.wait(false);
    allow_processors(allowed);
    work();
  };
  const size_t most = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::thread> workers;
  workers.reserve(most);
  try {
    while (workers.size() + 1 < most) {
      workers.emplace_back(begin);
      keep_off(workers.back().native_handle(), this_processor());
    }
  } catch (const std::system_error&) {  // no more threads to be had: those that run do the work
  } catch (const std::bad_alloc&) {     // the same
  }
  are_placed = true;
  are_placed.notify_all();
  work();
  for (std::thread& worker : workers) worker.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace oomscope
