// Runs `count` independent jobs on a few threads. Results go where the job puts them, by index.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace oomscope {

inline void run_parallel(size_t count, int threads, const std::function<void(size_t)>& job,
                         const std::function<void(size_t, size_t)>& progress = {}) {
  std::atomic<size_t> next{0};
  size_t done = 0;
  std::mutex progress_lock;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      job(i);
      const std::lock_guard<std::mutex> guard(progress_lock);
      ++done;
      if (progress) progress(done, count);
    }
  };
  std::vector<std::thread> workers;
  const size_t most = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  for (size_t i = 1; i < most; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace oomscope
