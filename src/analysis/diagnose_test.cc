// What the first sentence says of files that tell little.
#include <gtest/gtest.h>

#include "analysis/why.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;

Snapshot cut_behind(SnapshotBuilder builder) {
  Snapshot snapshot = builder.build();
  snapshot.complete = false;
  snapshot.settings.reset();
  return snapshot;
}

Diagnosis diagnosis_of(const Snapshot& snapshot) {
  Result<Diagnosis> diagnosis = diagnose(snapshot, 0, WhyOptions{});
  EXPECT_TRUE(diagnosis);
  return *std::move(diagnosis);
}

TEST(CutFile, WithoutAFailureDoesNotTellOfOne) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment(kA, {live_block(20 * kMiB)});
  EXPECT_EQ(diagnosis_of(cut_behind(std::move(b))).sentence.key, "why.cut-file");
}

TEST(CutFile, WithFailuresTellsOfThem) {
  SnapshotBuilder b;
  b.oom(kMiB, 0).segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment(kA, {live_block(20 * kMiB)});
  EXPECT_EQ(diagnosis_of(cut_behind(std::move(b))).sentence.key, "why.cut-file-survived");
}

}  // namespace
}  // namespace oomscope
