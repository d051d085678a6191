#include "base/side_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace oomscope {
namespace {

TEST(SideThread, DoesWhatThereIsToDoAndWaitsForMore) {
  std::atomic<int> wanted = 3;
  std::atomic<int> done = 0;
  std::counting_semaphore<> caught_up{0};
  SideThread side;
  ASSERT_TRUE(side.add(&done, [&] {
    if (done == wanted) return false;
    if (++done == wanted) caught_up.release();
    return true;
  }));
  caught_up.acquire();
  EXPECT_EQ(done, 3);
  wanted = 5;
  side.wake();
  caught_up.acquire();
  EXPECT_EQ(done, 5);
}

TEST(SideThread, TheLastDutyGoesFirst) {
  std::atomic<int> last = 0;
  std::atomic<int> last_at_first = -1;
  std::counting_semaphore<> begun{0};
  std::counting_semaphore<> go{0};
  std::counting_semaphore<> ended{0};
  SideThread side;
  ASSERT_TRUE(side.add(&last_at_first, [&] {
    begun.release();
    go.acquire();
    if (last == 0) return true;  // the other is there only now
    last_at_first = last.load();
    ended.release();
    return false;
  }));
  begun.acquire();
  ASSERT_TRUE(side.add(&last, [&] { return ++last < 100; }));
  go.release();
  go.release();
  ended.acquire();
  EXPECT_GE(last_at_first, 100);
}

TEST(SideThread, WhatHasItsTurnLastWaitsForTheOthers) {
  std::atomic<int> first = 0;
  std::atomic<int> first_at_last = -1;
  std::counting_semaphore<> go{0};
  std::counting_semaphore<> ended{0};
  SideThread side;
  ASSERT_TRUE(side.add(&first, [&] {
    if (first == 0) go.acquire();  // until the other is there
    return first < 100 && ++first > 0;
  }));
  const auto last = [&] {
    if (first_at_last < 0) ended.release();
    first_at_last = first.load();
    return false;
  };
  ASSERT_TRUE(side.add(&first_at_last, last, SideThread::Turn::last));
  go.release();
  ended.acquire();
  EXPECT_EQ(first_at_last, 100);
}

TEST(SideThread, WhatIsRemovedDoesNotRunAnyMore) {
  std::atomic<int> runs = 0;
  std::atomic<int> others = 0;
  SideThread side;
  ASSERT_TRUE(side.add(&runs, [&] { return ++runs % 2 == 0; }));
  ASSERT_TRUE(side.add(&others, [&] { return ++others % 2 == 0; }));
  while (runs < 10) side.wake();
  side.remove(&runs);
  const int then = runs;
  for (const int until = others + 10; others < until;) side.wake();
  EXPECT_EQ(runs, then);
  side.remove(&runs);
}

TEST(SideThread, EndsWithDutiesLeft) {
  SideThread side;
  ASSERT_TRUE(side.add(&side, [] { return true; }));
}

TEST(SideThread, WhatAlwaysHasMoreToDoCanBeRemoved) {
  std::atomic<int64_t> runs = 0;
  SideThread side;
  ASSERT_TRUE(side.add(&runs, [&] { return ++runs > 0; }));
  while (runs < 10) side.wake();
  side.remove(&runs);
  const int64_t then = runs;
  side.wake();
  EXPECT_EQ(runs, then);
}

}  // namespace
}  // namespace oomscope
