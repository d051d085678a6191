// Statistics: what counts where, and the net changes of inactive_split.
#include "caching/stats.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "caching/stats_names.h"
#include "support/allocator_rig.h"

namespace oomscope {
namespace {

TEST(StatCounter, PeakIsTheHighestCurrent) {
  StatCounter stat;
  stat.increase(5);
  stat.decrease(3);
  stat.increase(1);
  EXPECT_EQ(stat.value().current, 3);
  EXPECT_EQ(stat.value().peak, 5);
}

TEST(StatCounter, AllocatedSumsIncreasesAndFreedDecreases) {
  StatCounter stat;
  stat.increase(5);
  stat.decrease(3);
  stat.increase(1);
  EXPECT_EQ(stat.value().allocated(), 6);
  EXPECT_EQ(stat.value().freed, 3);
}

TEST(StatCounter, ANetChangeDecidesThePeakAtOnce) {
  StatCounter stat;
  stat.change(5);
  stat.change(-2);
  stat.change(0);
  EXPECT_EQ(stat.value().current, 3);
  EXPECT_EQ(stat.value().peak, 5);
  EXPECT_EQ(stat.value().freed, 2);
}

TEST(StatArray, CountsTheClassAndBoth) {
  StatArray stat;
  stat.increase(true, 2);
  stat.increase(false, 7);
  EXPECT_EQ(stat.all().current, 9);
  EXPECT_EQ(stat.small().current, 2);
  EXPECT_EQ(stat.large().current, 7);
}

// --- what counts ---------------------------------------------------------------------------------------------------

TEST(Counting, AllocatedBytesIncludeAnUnsplitTail) {
  Rig rig;
  rig.get(11 * kMiB);
  EXPECT_EQ(rig.stats().allocated_bytes.all().current, 12 * kMiB);
  EXPECT_EQ(rig.stats().active_bytes.all().current, 12 * kMiB);
}

TEST(Counting, RequestedBytesAreWhatWasAskedFor) {
  Rig rig;
  Block* block = rig.get(11 * kMiB - 77);
  EXPECT_EQ(rig.stats().requested_bytes.all().current, 11 * kMiB - 77);
  rig.free(block);
  EXPECT_EQ(rig.stats().requested_bytes.all().current, 0);
  EXPECT_EQ(rig.stats().requested_bytes.all().freed, 11 * kMiB - 77);
}

TEST(Counting, SegmentsAndTheirBytesLeaveWithTheDriverFree) {
  Rig rig;
  rig.free(rig.get(5 * kMiB));
  EXPECT_EQ(rig.stats().segment.large().current, 1);
  EXPECT_EQ(rig.stats().reserved_bytes.large().current, 20 * kMiB);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().segment.large().current, 0);
  EXPECT_EQ(rig.stats().segment.large().freed, 1);
  EXPECT_EQ(rig.stats().reserved_bytes.all().peak, 20 * kMiB);
}

TEST(Counting, DriverCallsAreCounted) {
  Rig rig;
  rig.free(rig.get(5 * kMiB));
  rig.get(512);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().num_device_alloc, 2);
  EXPECT_EQ(rig.stats().num_device_free, 1);
}

TEST(Oversize, AllocationCountsByTheBlockHandedOut) {
  Rig rig({.settings = {.max_split_size_bytes = 40 * kMiB}});
  rig.free(rig.get(45 * kMiB));  // 46 MiB
  Block* block = rig.get(40 * kMiB);
  EXPECT_EQ(block->size, 46 * kMiB);
  EXPECT_EQ(rig.stats().oversize_allocations.value().current, 1);
  rig.get(38 * kMiB);
  EXPECT_EQ(rig.stats().oversize_allocations.value().current, 1);
  rig.free(block);
  EXPECT_EQ(rig.stats().oversize_allocations.value().current, 0);
  EXPECT_EQ(rig.stats().oversize_allocations.value().allocated(), 2);
}

// The segment is rounded up to max_split_size, and what is left over is too little to split off.
TEST(Oversize, BlockCountsThoughTheRequestIsSmaller) {
  Rig rig({.settings = {.max_split_size_bytes = 40 * kMiB}});
  EXPECT_EQ(rig.get(39 * kMiB + 512)->size, 40 * kMiB);
  EXPECT_EQ(rig.stats().oversize_allocations.value().current, 1);
}

TEST(Oversize, PendingBlockCountsNoMore) {
  Rig rig({.settings = {.max_split_size_bytes = 40 * kMiB}});
  Block* block = rig.get(45 * kMiB);
  rig.allocator.free_held(block);
  EXPECT_EQ(rig.stats().oversize_allocations.value().current, 0);
}

TEST(Oversize, SegmentCountsFromMaxSplitSizeOn) {
  Rig rig({.settings = {.max_split_size_bytes = 40 * kMiB}});
  rig.free(rig.get(40 * kMiB));
  rig.free(rig.get(38 * kMiB));
  EXPECT_EQ(rig.stats().oversize_segments.value().current, 1);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().oversize_segments.value().current, 0);
}

// --- inactive_split ------------------------------------------------------------------------------------------------

TEST(InactiveSplit, FirstSplitCountsTheRemainder) {
  Rig rig;
  rig.get(5 * kMiB);
  EXPECT_EQ(rig.stats().inactive_split.all().current, 1);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().current, 15 * kMiB);
}

TEST(InactiveSplit, FurtherSplitTakesWhatWasHandedOut) {
  Rig rig;
  rig.get(5 * kMiB);
  rig.get(4 * kMiB);
  EXPECT_EQ(rig.stats().inactive_split.all().allocated(), 1);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().current, 11 * kMiB);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().freed, 4 * kMiB);
}

TEST(InactiveSplit, RemainderHandedOutWholeCountsNoMore) {
  Rig rig;
  rig.get(5 * kMiB);
  rig.get(15 * kMiB);
  EXPECT_EQ(rig.stats().inactive_split.all().current, 0);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().current, 0);
}

TEST(InactiveSplit, WholeSegmentHandedOutDoesNotCount) {
  Rig rig;
  rig.get(20 * kMiB);
  EXPECT_EQ(rig.stats().inactive_split.all().allocated(), 0);
}

TEST(InactiveSplit, FreeBetweenLiveBlocksCounts) {
  Rig rig;
  rig.get(5 * kMiB);
  Block* block = rig.get(5 * kMiB);
  rig.get(10 * kMiB);
  rig.free(block);
  EXPECT_EQ(rig.stats().inactive_split.all().current, 1);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().current, 5 * kMiB);
}

// Three free blocks become one that still has a neighbour: the count falls by one, once, and the bytes rise once.
TEST(InactiveSplit, MergeIsOneNetChange) {
  Rig rig;
  Block* a = rig.get(4 * kMiB);
  Block* b = rig.get(4 * kMiB);
  Block* c = rig.get(4 * kMiB);
  rig.get(8 * kMiB);
  rig.free(a);
  rig.free(c);
  const Stat before = rig.stats().inactive_split.all();
  const Stat bytes_before = rig.stats().inactive_split_bytes.all();
  rig.free(b);
  EXPECT_EQ(rig.stats().inactive_split.all().current, 1);
  EXPECT_EQ(rig.stats().inactive_split.all().allocated(), before.allocated());
  EXPECT_EQ(rig.stats().inactive_split.all().peak, 2);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().allocated(), bytes_before.allocated() + 4 * kMiB);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().freed, bytes_before.freed);
}

TEST(InactiveSplit, MergeWithOneNeighbourChangesNoCount) {
  Rig rig;
  Block* a = rig.get(4 * kMiB);
  Block* b = rig.get(4 * kMiB);
  rig.get(12 * kMiB);
  rig.free(a);
  const Stat before = rig.stats().inactive_split.all();
  rig.free(b);
  EXPECT_EQ(rig.stats().inactive_split.all().current, 1);
  EXPECT_EQ(rig.stats().inactive_split.all().allocated(), before.allocated());
  EXPECT_EQ(rig.stats().inactive_split.all().freed, before.freed);
}

TEST(InactiveSplit, WholeSegmentFreeAgainCountsNothing) {
  Rig rig;
  rig.free(rig.get(5 * kMiB));
  EXPECT_EQ(rig.stats().inactive_split.all().current, 0);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().current, 0);
  EXPECT_EQ(rig.stats().inactive_split_bytes.all().freed, 15 * kMiB);
}

TEST(InactiveSplit, DriverFreeDoesNotTouchIt) {
  Rig rig;
  rig.free(rig.get(5 * kMiB));
  const int64_t freed = rig.stats().inactive_split.all().freed;
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().inactive_split.all().freed, freed);
}

// --- names ---------------------------------------------------------------------------------------------------------

std::map<std::string, int64_t> named(const Stats& stats, const AllocatorSettings& settings) {
  const auto flat = flat_stats(stats, settings);
  return {flat.begin(), flat.end()};
}

TEST(FlatStats, HaveTheNamesOfMemoryStats) {
  const auto flat = named(Stats{}, {});
  for (const char* array : {"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
                            "active_bytes", "inactive_split_bytes", "requested_bytes"}) {
    for (const char* member : {"all", "small_pool", "large_pool"}) {
      for (const char* metric : {"current", "peak", "allocated", "freed"}) {
        EXPECT_EQ(flat.count(std::string(array) + "." + member + "." + metric), 1u) << array << member << metric;
      }
    }
  }
  for (const char* name : {"oversize_allocations.current", "oversize_segments.freed", "num_alloc_retries", "num_ooms",
                           "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size"}) {
    EXPECT_EQ(flat.count(name), 1u) << name;
  }
  EXPECT_EQ(flat.size(), 9u * 3 * 4 + 2 * 4 + 7);
}

TEST(FlatStats, UnlimitedSplitSizeIsMinusOne) {
  EXPECT_EQ(named(Stats{}, {})["max_split_size"], -1);
  EXPECT_EQ(named(Stats{}, {.max_split_size_bytes = 40 * kMiB})["max_split_size"], 40 * kMiB);
}

TEST(FlatStats, CarryTheValues) {
  Rig rig;
  rig.get(5 * kMiB);
  const auto flat = named(rig.stats(), rig.allocator.settings());
  EXPECT_EQ(flat.at("allocated_bytes.large_pool.peak"), 5 * kMiB);
  EXPECT_EQ(flat.at("reserved_bytes.all.allocated"), 20 * kMiB);
  EXPECT_EQ(flat.at("num_device_alloc"), 1);
}

}  // namespace
}  // namespace oomscope
