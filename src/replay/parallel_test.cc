#include "replay/parallel.h"

#include <gtest/gtest.h>

#include <new>
#include <numeric>

namespace oomscope {
namespace {

TEST(RunParallel, DoesEveryJobOnce) {
  for (const int threads : {0, 1, 3, 100}) {
    std::vector<int> times(50);
    run_parallel(times.size(), threads, [&](size_t i) { times[i] += 1; });
    EXPECT_EQ(times, std::vector<int>(50, 1)) << threads;
  }
}

TEST(RunParallel, NothingToDoIsDone) {
  run_parallel(0, 4, [](size_t) { FAIL(); });
}

TEST(RunParallel, ReportsProgressUpToTheEnd) {
  std::vector<size_t> seen;
  run_parallel(
      5, 2, [](size_t) {}, [&](size_t done, size_t count) { seen.push_back(done * 10 + count); });
  EXPECT_EQ(seen, (std::vector<size_t>{15, 25, 35, 45, 55}));
}

TEST(RunParallel, ThrowsWhatAJobThrewInTheCallersThread) {
  for (const int threads : {1, 4}) {
    EXPECT_THROW(run_parallel(100, threads,
                              [](size_t i) {
                                if (i == 30) throw std::bad_alloc();
                              }),
                 std::bad_alloc);
  }
}

}  // namespace
}  // namespace oomscope
