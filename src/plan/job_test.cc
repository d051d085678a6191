#include "plan/job.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f0040000000;

// Two blocks of 20 MiB; the first is freed before the second is made.
class JobTest : public testing::Test {
 protected:
  JobTest() {
    SnapshotBuilder b;
    b.segment_alloc(kA, 20 * kMiB).alloc(kA, 20 * kMiB).free(kA, 20 * kMiB);
    b.segment_alloc(kB, 20 * kMiB).alloc(kB, 20 * kMiB);
    snapshot_ = b.build();
    verification_ = verify(snapshot_, 0, {.limit_bytes = {}, .rules = default_rule_set()});
    structure_ = find_structure(verification_->timeline);
    job_ = make_job(*verification_, structure_);
  }

  [[nodiscard]] int64_t peak(const Job& job) const {
    return replay_what_if(job.requests, {.rules = default_rule_set(), .settings = {}, .cap_bytes = {}}).peak_requested;
  }

  Snapshot snapshot_;
  std::unique_ptr<Verification> verification_;
  Structure structure_;
  Job job_;
};

TEST_F(JobTest, WithoutChangesItIsTheRecording) {
  const Job same = JobEditor(job_).build();
  EXPECT_EQ(same.requests.kind, job_.requests.kind);
  EXPECT_EQ(same.requests.id, job_.requests.id);
  EXPECT_EQ(peak(same), 20 * kMiB);
}

TEST_F(JobTest, ADroppedBlockIsNeverAskedFor) {
  JobEditor editor(job_);
  editor.drop(0);
  const Job changed = editor.build();
  EXPECT_EQ(changed.blocks[0].made_at, kNowhere);
  EXPECT_EQ(peak(changed), 20 * kMiB);
}

TEST_F(JobTest, ABlockMayBeFreedLater) {
  JobEditor editor(job_);
  editor.free_at(0, static_cast<uint32_t>(job_.requests.kind.size()));
  EXPECT_EQ(peak(editor.build()), 40 * kMiB);
}

TEST_F(JobTest, ScratchLivesForOneRequest) {
  JobEditor editor(job_);
  editor.scratch(job_.blocks[1].made_at, 5 * kMiB, 1);
  editor.scratch(job_.blocks[0].freed_at, 7 * kMiB, 1);
  const Job changed = editor.build();
  EXPECT_EQ(changed.blocks.size(), job_.blocks.size() + 2);
  EXPECT_EQ(peak(changed), 27 * kMiB);
}

TEST_F(JobTest, ChangesFollowEachOther) {
  JobEditor first(job_);
  first.resize(1, 30 * kMiB);
  const Job larger = first.build();
  JobEditor second(larger);
  second.drop(0);
  EXPECT_EQ(peak(second.build()), 30 * kMiB);
}

}  // namespace
}  // namespace oomscope
