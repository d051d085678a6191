#include "base/processors.h"

#include <gtest/gtest.h>

#include <thread>

namespace oomscope {
namespace {

TEST(Processors, SpinsUntilItHoldsOrGivesUp) {
  int asked = 0;
  EXPECT_TRUE(spin_until([&] { return ++asked == 1; }));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(spin_until([&] { return ++asked < 0; }));
  EXPECT_GT(asked, 1);
}

TEST(Processors, WhatTheProcessMayUseCounts) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(has_several_processors(), CPU_COUNT(&before) > 1);
  std::thread([] {
    keep_off(pthread_self(), this_processor());
    keep_off(pthread_self(), this_processor());
  }).join();
  EXPECT_EQ(has_several_processors(), CPU_COUNT(&before) > 1);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(this_processor()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_FALSE(has_several_processors());
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Processors, AThreadLeavesAProcessorUnlessThereIsNoOther) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    const int processors = CPU_COUNT(&allowed);
    const int here = this_processor();
    ASSERT_GE(here, 0);
    keep_off(pthread_self(), here);
    if (processors > 1) {
      EXPECT_NE(this_processor(), here);
    }
    for (int i = 0; i < processors; ++i) keep_off(pthread_self(), this_processor());  // the last one stays
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    EXPECT_EQ(CPU_COUNT(&allowed), 1);
    keep_off(pthread_self(), -1);
    keep_off(pthread_self(), CPU_SETSIZE);
    EXPECT_GE(this_processor(), 0);
  }).join();
}

}  // namespace
}  // namespace oomscope
