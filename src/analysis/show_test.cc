// Totals of one moment.
#include "analysis/show.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;

// A state without history: one block is live, the other one waits for another stream.
Snapshot one_pending() {
  SnapshotBuilder b;
  FinalBlock pending = live_block(8 * kMiB);
  pending.state = BlockState::active_pending_free;
  b.segment(kA, {live_block(12 * kMiB), pending});
  Snapshot snapshot = b.build();
  snapshot.traces.resize(1);
  return snapshot;
}

TEST(ShowWithoutHistory, CountsWhatWaitsAsActiveAlone) {
  const Snapshot snapshot = one_pending();
  const std::unique_ptr<Verification> v = verify(snapshot, 0);
  const Result<Shown> shown = show_state(*v, Moment::peak, 0, GroupBy::stack);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->totals.allocated, 12 * kMiB);
  EXPECT_EQ(shown->totals.active, 20 * kMiB);
  EXPECT_EQ(shown->totals.requested, 20 * kMiB);
  EXPECT_EQ(shown->rows[0].bytes, shown->totals.active);
}

TEST(ShowWithoutHistory, HasNoPeakBelowWhatIsThere) {
  const Snapshot snapshot = one_pending();
  const std::unique_ptr<Verification> v = verify(snapshot, 0);
  const Result<Shown> shown = show_state(*v, Moment::end, 0, GroupBy::stack);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->totals.peak_allocated, shown->totals.allocated);
  EXPECT_EQ(shown->totals.peak_requested, shown->totals.requested);
  EXPECT_EQ(shown->totals.peak_reserved, shown->totals.reserved);
}

TEST(ShowWithoutHistory, HasNoEventToShow) {
  const Snapshot snapshot = one_pending();
  const std::unique_ptr<Verification> v = verify(snapshot, 0);
  EXPECT_EQ(show_state(*v, Moment::event, 0, GroupBy::stack).error().what, "error.no-events");
}

}  // namespace
}  // namespace oomscope
