// Allocations are put together from the trace and from what no event tells.
#include "model/allocations.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;
constexpr uint64_t kC = 0x7f0080000000;

// Events 0 to 4: a free of what was there, an allocation that stays, one that goes.
Snapshot made_recording() {
  SnapshotBuilder builder;
  builder.stream(0).free_requested(kA, 700).stream(9).python({{"train.py", 3, "step"}});
  builder.alloc(kB, 100).alloc(kC, 300).free(kC, 300);
  return builder.build();
}

Allocations made_allocations(const Trace& trace) {
  LargeVector<AllocationEvents> events;
  events.push_back({.free_requested = 0});
  events.push_back({.begin = 1});
  events.push_back({.begin = 2, .free_requested = 3, .free_completed = 4});
  return {trace, std::move(events)};
}

TEST(Allocations, HaveWhatTheirFirstEventTells) {
  const Snapshot snapshot = made_recording();
  const Allocations all = made_allocations(snapshot.traces[0]);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].address, kA);
  EXPECT_EQ(all[0].requested, 700);
  EXPECT_EQ(all[0].stack, StackId::none);  // that of a free is not where it was allocated
  EXPECT_EQ(all[0].stream_index, 0U);
  EXPECT_EQ(all[1].address, kB);
  EXPECT_EQ(all[1].stack, StackId{1});
  EXPECT_EQ(all[1].stream_index, 1U);
  EXPECT_EQ(all[2].requested, 300);
  EXPECT_EQ(all[2].free_completed, 4U);
  EXPECT_EQ(all[2].size, 0);
  int64_t requested = 0;
  for (const Allocation& allocation : all) requested += allocation.requested;
  EXPECT_EQ(requested, 1100);
}

TEST(Allocations, KeepWhatNoEventTells) {
  const Snapshot snapshot = made_recording();
  Allocations all = made_allocations(snapshot.traces[0]);
  const uint32_t silent = all.add_silent({AllocationEvents{}, 0x1000, 5, 512, 0, 2, StackId{1}});
  EXPECT_EQ(silent, 3U);
  EXPECT_EQ(all[silent].address, 0x1000U);
  EXPECT_EQ(all[silent].pool_index, 2U);
  all.set_size(0, 1024);
  all.set_size(silent, 2048);
  all.set_pool_index(2, 1);
  all.set_pool_index(silent, 0);
  all.set_ghost_stack(0, StackId{1});
  all.set_ghost_stack(silent, StackId::none);
  const Allocations copy = all;
  EXPECT_EQ(copy[0].size, 1024);
  EXPECT_EQ(copy.size_of(silent), 2048);
  EXPECT_EQ(copy[1].pool_index, 0U);
  EXPECT_EQ(copy[2].pool_index, 1U);
  EXPECT_EQ(copy[silent].pool_index, 0U);
  EXPECT_EQ(copy[0].stack, StackId{1});
  EXPECT_EQ(copy[silent].stack, StackId::none);
}

TEST(Allocations, AreThereBetweenTheirEvents) {
  const Snapshot snapshot = made_recording();
  Allocations all = made_allocations(snapshot.traces[0]);
  const uint32_t silent = all.add_silent({AllocationEvents{}, 0x1000, 5, 512, 0, 0, StackId::none});
  for (size_t id = 0; id < 3; ++id) all.set_size(id, 512);
  const auto live = [&](uint32_t event) {
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < all.size(); ++id) {
      EXPECT_EQ(all.is_live_after(id, event), is_live_after(all[id], event));
      if (all.is_live_after(id, event)) ids.push_back(id);
    }
    return ids;
  };
  EXPECT_EQ(live(kNoEvent), (std::vector<uint32_t>{0, silent}));  // before the first event
  EXPECT_EQ(live(0), (std::vector<uint32_t>{0, silent}));         // freed, but not returned
  EXPECT_EQ(live(3), (std::vector<uint32_t>{0, 1, 2, silent}));
  EXPECT_EQ(live(4), (std::vector<uint32_t>{0, 1, silent}));
  all.set_size(1, 0);  // the replay could not place it
  EXPECT_EQ(live(4), (std::vector<uint32_t>{0, silent}));
  EXPECT_EQ(all.first_from(0), 0U);
  EXPECT_EQ(all.first_from(1), 1U);
  EXPECT_EQ(all.first_from(2), 2U);
  EXPECT_EQ(all.first_from(3), 3U);
}

}  // namespace
}  // namespace oomscope
