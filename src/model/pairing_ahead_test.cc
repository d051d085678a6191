// Pairing in pieces and on a second thread gives what pairing at once gives.
#include "model/pairing_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

// Allocs and frees at few addresses, some of them of blocks that were there before, some of blocks twice.
Snapshot made_recording(size_t events) {
  std::mt19937 random(1);
  SnapshotBuilder builder;
  for (size_t i = 0; i < events; ++i) {
    const uint64_t address = 0x7f0000000000 + random() % 5000 * 512;
    switch (random() % 4) {
      case 0: builder.alloc(address, 1 + random() % 3); break;
      case 1: builder.free_requested(address, 1 + random() % 3); break;
      case 2: builder.free_completed(address, 1 + random() % 3); break;
      default: builder.segment_alloc(address, 2 << 20); break;
    }
  }
  return builder.build();
}

void expect_equal(const Pairs& pairs, const Pairs& expected) {
  EXPECT_EQ(pairs.allocation_of, expected.allocation_of);
  EXPECT_EQ(pairs.driver_events, expected.driver_events);
  EXPECT_EQ(pairs.unfinished, expected.unfinished);
  EXPECT_EQ(pairs.orphan_frees, expected.orphan_frees);
  ASSERT_EQ(pairs.allocations.size(), expected.allocations.size());
  for (size_t i = 0; i < pairs.allocations.size(); ++i) {
    const AllocationEvents& a = pairs.allocations[i];
    const AllocationEvents& b = expected.allocations[i];
    ASSERT_TRUE(a.begin == b.begin && a.free_requested == b.free_requested && a.free_completed == b.free_completed);
  }
}

// The first `count` events, in columns with room for all.
Trace first_events(const Trace& whole, size_t count) {
  Trace trace;
  for (size_t i = 0; i < count; ++i) {
    trace.action.push_back(whole.action[i]);
    trace.addr.push_back(whole.addr[i]);
    trace.size.push_back(whole.size[i]);
    trace.stack.push_back(whole.stack[i]);
  }
  return trace;
}

TEST(Pairing, UnfinishedAreThoseThatLackAnEvent) {
  const Snapshot snapshot = made_recording(20000);
  const Pairs pairs = pair_events(snapshot.traces[0]);
  std::vector<uint32_t> lacking;
  for (uint32_t id = 0; id < pairs.allocations.size(); ++id) {
    const AllocationEvents& allocation = pairs.allocations[id];
    const bool complete =
        allocation.begin != kNoEvent && allocation.free_requested != kNoEvent && allocation.free_completed != kNoEvent;
    if (!complete) lacking.push_back(id);
  }
  EXPECT_GT(lacking.size(), 100U);
  EXPECT_EQ(pairs.unfinished, lacking);
}

TEST(Pairing, InPiecesIsAsAtOnce) {
  const Snapshot snapshot = made_recording(20000);
  const Trace& trace = snapshot.traces[0];
  Pairing pairing(10);
  for (size_t end = 0; end < trace.size_events(); end += 777) pairing.add(EventColumns::of(trace), end);
  pairing.add(EventColumns::of(trace), trace.size_events());
  expect_equal(pairing.finish(), pair_events(trace));
}

TEST(PairingAhead, OnAThreadIsAsAtOnce) {
  const Snapshot snapshot = made_recording(200000);
  const Trace& whole = snapshot.traces[0];
  SideThread side;
  PairingAhead ahead(side);
  Trace growing = first_events(whole, 100000);
  ahead.follow(growing, false);
  ahead.follow(growing, true);
  growing = first_events(whole, 190000);  // elsewhere in memory
  ahead.follow(growing, false);
  for (size_t i = 190000; i < whole.size_events() && growing.action.size() < growing.action.capacity(); ++i) {
    growing.action.push_back(whole.action[i]);
    growing.addr.push_back(whole.addr[i]);
    growing.size.push_back(whole.size[i]);
    growing.stack.push_back(whole.stack[i]);
    ahead.follow(growing, false);
  }
  const Trace moved = std::move(growing);
  const std::optional<Pairs> pairs = ahead.finish(moved);
  ASSERT_TRUE(pairs.has_value());
  expect_equal(*pairs, pair_events(moved));
}

TEST(PairingAhead, AnotherTraceIsNotTaken) {
  const Snapshot snapshot = made_recording(100000);
  const Snapshot other = made_recording(100000);
  SideThread side;
  PairingAhead ahead(side);
  EXPECT_FALSE(ahead.finish(snapshot.traces[0]).has_value());
  ahead.follow(snapshot.traces[0], false);
  EXPECT_FALSE(ahead.finish(other.traces[0]).has_value());
}

TEST(PairingAhead, AnotherTraceWhereItHasBeenIsNotTaken) {
  Snapshot snapshot = made_recording(100000);
  Trace& trace = snapshot.traces[0];
  SideThread side;
  PairingAhead ahead(side);
  ahead.follow(trace, false);
  ahead.follow(trace, true);
  std::reverse(trace.action.begin(), trace.action.end());  // now that it has gone
  EXPECT_FALSE(ahead.finish(trace).has_value());
}

TEST(PairingAhead, ATraceThatMovedShortlyBeforeItsEndIsTaken) {
  const Snapshot snapshot = made_recording(100000);
  const Trace& whole = snapshot.traces[0];
  SideThread side;
  PairingAhead ahead(side);
  Trace growing = first_events(whole, 99900);
  ahead.follow(growing, false);
  ahead.follow(growing, true);
  growing = first_events(whole, 100000);
  ahead.follow(growing, false);
  const std::optional<Pairs> pairs = ahead.finish(growing);
  ASSERT_TRUE(pairs.has_value());
  expect_equal(*pairs, pair_events(whole));
}

TEST(PairingAhead, OnceStoppedTheTraceMayGo) {
  SideThread side;
  PairingAhead ahead(side);
  {
    const Snapshot snapshot = made_recording(200000);
    ahead.follow(snapshot.traces[0], false);
    ahead.stop();
  }
  EXPECT_FALSE(ahead.finish(made_recording(10).traces[0]).has_value());
}

TEST(PairingAhead, EventsThatWereDroppedUndoIt) {
  Snapshot snapshot = made_recording(100000);
  SideThread side;
  PairingAhead ahead(side);
  ahead.follow(snapshot.traces[0], false);
  snapshot.traces[0].action[99999] = Action::unknown;
  EXPECT_FALSE(ahead.finish(snapshot.traces[0]).has_value());
}

}  // namespace
}  // namespace oomscope
