// What the first sentence says of files that tell little and of peaks, what the trust line counts, and what is said of
// a limit that a run met.
#include <algorithm>

#include <gtest/gtest.h>

#include "analysis/why.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;

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

PhraseValue value_of(const Phrase& phrase, std::string_view name) {
  const auto found = std::find_if(phrase.values.begin(), phrase.values.end(),
                                  [&](const PhraseValue& value) { return value.name == name; });
  return found == phrase.values.end() ? PhraseValue{} : *found;
}

Phrase need_of(const Snapshot& snapshot) {
  const Diagnosis diagnosis = diagnosis_of(snapshot);
  const std::vector<Phrase> need = value_of(diagnosis.sentence, "need").phrases;
  return need.empty() ? Phrase{} : need.front();
}

TEST(Peak, TellsWhatOnlyWaitsForOtherStreams) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free_requested(kA, 20 * kMiB);
  b.segment_alloc(kB, 12 * kMiB).alloc(kB, 12 * kMiB).free_completed(kA, 20 * kMiB);
  b.segment(kA, {{.size = 20 * kMiB}}).segment(kB, {live_block(12 * kMiB)});
  const Snapshot snapshot = b.build();
  EXPECT_EQ(diagnosis_of(snapshot).floor_bytes, 32 * kMiB);
  const Phrase need = need_of(snapshot);
  EXPECT_EQ(need.key, "why.waits-for-streams");
  EXPECT_EQ(value_of(need, "pending").text, "20 MiB");
}

TEST(Peak, OfTensorsAloneIsWhatEachAllocatorNeeds) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).segment(kA, {live_block(20 * kMiB)});
  EXPECT_EQ(need_of(b.build()).key, "why.no-less");
}

TEST(Trust, CountsStacksWithAPythonFrame) {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).called_from("at::empty").alloc(kA, 10 * kMiB);
  b.python({{"/home/u/train.py", 10, "main"}}).alloc(kA + 10 * kMiB, 10 * kMiB);
  b.segment(kA, {live_block(10 * kMiB), live_block(10 * kMiB)});
  const Snapshot snapshot = b.build();
  const std::vector<Phrase> stacks = value_of(diagnosis_of(snapshot).trust, "stacks").phrases;
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(value_of(stacks.front(), "percent").text, "50.0 %");
}

bool says(const Snapshot& snapshot, std::string_view code, const WhyOptions& options) {
  const Diagnosis diagnosis = diagnosis_of(snapshot);
  const Result<Changes> changes = find_changes(diagnosis, options);
  EXPECT_TRUE(changes);
  return std::any_of(changes->caveats.begin(), changes->caveats.end(),
                     [&](const Caveat& caveat) { return caveat.code == code; });
}

// A request of 40 MiB is refused and survived; 20 MiB stay cached until the limit drives them out for 30.
Snapshot run_under_limit() {
  SnapshotBuilder b;
  b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB).segment_free(kA, 20 * kMiB);
  b.segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB).free(kB, 30 * kMiB).segment_free(kB, 30 * kMiB);
  b.oom(40 * kMiB).segment_alloc(kB, 30 * kMiB).alloc(kB, 30 * kMiB).segment(kB, {live_block(30 * kMiB)});
  return b.build();
}

TEST(Limit, ShapedARunThatReservesMoreWithoutIt) {
  EXPECT_TRUE(says(run_under_limit(), "limit-shaped-the-run", WhyOptions{}));
  EXPECT_FALSE(says(run_under_limit(), "limit-was-met", WhyOptions{}));
}

TEST(Limit, IsOnlyMetWhereNoReplayReservesMore) {
  WhyOptions capped;
  capped.cap_bytes = 30 * kMiB;
  EXPECT_TRUE(says(run_under_limit(), "limit-was-met", capped));
  EXPECT_FALSE(says(run_under_limit(), "limit-shaped-the-run", capped));
}

// What is free in the default pool is closed to a private one; that does not make it a private pool's.
TEST(FreeSpace, OfTheDefaultPoolIsNotOfPrivateOnes) {
  constexpr PoolId kPool{.first = 0, .second = 1};
  SnapshotBuilder b;
  b.pools_recorded().segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
  b.pools_recorded(kPool).segment_alloc(kB, 40 * kMiB).alloc(kB, 40 * kMiB).oom(20 * kMiB, 0);
  b.segment(kA, {{.size = 20 * kMiB}});
  b.segment(kB, {live_block(40 * kMiB)}, {.pool = kPool});
  const Diagnosis diagnosis = diagnosis_of(b.build());
  EXPECT_EQ(diagnosis.free_space.default_pool_bytes, 20 * kMiB);
  EXPECT_EQ(diagnosis.free_space.private_pool_bytes, 0);
  const bool is_in_balance = std::any_of(diagnosis.balance.begin(), diagnosis.balance.end(), [](const BalanceRow& row) {
    return row.name.key == "balance.default-pool" && row.bytes == 20 * kMiB;
  });
  EXPECT_TRUE(is_in_balance);
}

}  // namespace
}  // namespace oomscope
