#include "analysis/diff.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes_text.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

LiveSite site(const std::string& file, const std::string& function, uint64_t line, int64_t bytes,
              std::vector<uint64_t> callees = {}, uint32_t first_event = 0) {
  return LiveSite{.file = file,
                  .function = function,
                  .line = line,
                  .user_code = true,
                  .bytes = bytes,
                  .count = 1,
                  .callees = std::move(callees),
                  .first_event = first_event};
}

const DiffRow* find(const std::vector<DiffRow>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const DiffRow& row) { return row.site == name; });
  return found == rows.end() ? nullptr : &*found;
}

TEST(MatchSites, FollowsLinesThatAnEditMoved) {
  const std::vector<DiffRow> rows =
      match_sites({site("train.py", "forward", 88, 10, {1}), site("train.py", "forward", 91, 20, {2})},
                  {site("train.py", "forward", 88, 5, {3}), site("train.py", "forward", 90, 10, {1}),
                   site("train.py", "forward", 93, 20, {2})});
  ASSERT_EQ(rows.size(), 3U);
  ASSERT_NE(find(rows, "train.py:88->90 forward"), nullptr);
  EXPECT_TRUE(find(rows, "train.py:88->90 forward")->moved());
  EXPECT_EQ(find(rows, "train.py:88->90 forward")->delta(), 0);
  ASSERT_NE(find(rows, "train.py:91->93 forward"), nullptr);
  ASSERT_NE(find(rows, "train.py:88 forward"), nullptr);
  EXPECT_EQ(find(rows, "train.py:88 forward")->bytes_a, 0);
}

TEST(MatchSites, MatchesALineThatWasRewritten) {
  const std::vector<DiffRow> rows =
      match_sites({site("a/train.py", "loss", 7, 10, {1})}, {site("b/train.py", "loss", 9, 30, {2})});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].delta(), 20);
}

TEST(MatchSites, KnowsInductorsFilesByWhatTheyAreAndTheirOrder) {
  const std::string hash_a = "/tmp/torchinductor_me/ab/cab2tkqv3eyz6xqvt5fk4ubz47hyp2mvkgk3tzvlqvlwxe3lb2wd.py";
  const std::string hash_b = "/tmp/torchinductor_me/xy/cxy4qqqv3eyz6xqvt5fk4ubz47hyp2mvkgk3tzvlqvlwxe3lb77a.py";
  const std::string hash_c = "/tmp/torchinductor_me/zz/czz5tkqv3eyz6xqvt5fk4ubz47hyp2mvkgk3tzvlqvlwxe3lb2wd.py";
  const std::string hash_d = "/tmp/torchinductor_me/qq/cqq5tkqv3eyz6xqvt5fk4ubz47hyp2mvkgk3tzvlqvlwxe3lb2wd.py";
  const std::vector<DiffRow> rows =
      match_sites({site(hash_a, "call", 100, 10, {}, 50), site(hash_b, "call", 40, 7, {}, 9)},
                  {site(hash_c, "call", 104, 12, {}, 60), site(hash_d, "call", 40, 7, {}, 8)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].delta(), 2);
  EXPECT_EQ(rows[1].delta(), 0);
}

TEST(MatchSites, PairsFilesOfOneNameByTheirFolders) {
  const std::vector<DiffRow> rows =
      match_sites({site("/x/enc/model.py", "forward", 5, 10), site("/x/dec/model.py", "forward", 5, 20)},
                  {site("/y/dec/model.py", "forward", 6, 21), site("/y/enc/model.py", "forward", 5, 10)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].delta(), 1);
  EXPECT_EQ(rows[1].delta(), 0);
}

TEST(MatchSites, SumsUpWhateverMatches) {
  const std::vector<LiveSite> a = {site("a.py", "f", 1, 5), site("b.py", "g", 1, 6), site("", "", 0, 7)};
  const std::vector<LiveSite> b = {site("a.py", "f", 2, 50), site("c.py", "h", 1, 60)};
  int64_t bytes_a = 0;
  int64_t bytes_b = 0;
  for (const DiffRow& row : match_sites(a, b)) {
    bytes_a += row.bytes_a;
    bytes_b += row.bytes_b;
  }
  EXPECT_EQ(bytes_a, 18);
  EXPECT_EQ(bytes_b, 110);
}

constexpr uint64_t kA = 0x7f0000000000;

// Step 0 holds 5 MiB at most, step 1 holds 5 + 2.
Snapshot two_steps(bool marked) {
  SnapshotBuilder builder;
  builder.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB);
  builder.alloc(kA + 5 * kMiB, 2 * kMiB).free(kA + 5 * kMiB, 2 * kMiB);
  builder.segment(kA, {live_block(5 * kMiB), {.size = 15 * kMiB}});
  Snapshot snapshot = builder.build();
  if (!marked) return snapshot;
  const auto mark = [&](const char* name, bool is_start, int64_t time_us) {
    snapshot.annotations.push_back(
        Annotation{.name = snapshot.strings.intern(name), .is_start = is_start, .device = 0, .time_us = time_us});
  };
  mark("oomscope.step:0", true, 0);
  mark("oomscope.step:0", false, 2);
  mark("ProfilerStep#1", true, 2);
  mark("ProfilerStep#1", false, 5);
  return snapshot;
}

TEST(PeakOfStep, IsFoundBetweenTheStepsMarks) {
  const Snapshot snapshot = two_steps(true);
  const std::unique_ptr<Verification> verification = verify(snapshot, 0);
  EXPECT_EQ(*peak_of_step(*verification, 0), 1U);
  EXPECT_EQ(*peak_of_step(*verification, 1), 2U);
  EXPECT_EQ(peak_of_step(*verification, 2).error().code, "step-not-found");
}

TEST(PeakOfStep, IsUnknownWithoutMarks) {
  const Snapshot snapshot = two_steps(false);
  const std::unique_ptr<Verification> verification = verify(snapshot, 0);
  EXPECT_EQ(peak_of_step(*verification, 0).error().code, "steps-unknown");
}

TEST(PeakOfStep, WithoutMarksIsThatOfTheStepsThatFramesShow) {
  const SnapshotBuilder::PythonFrame main{"/home/u/train.py", 1, "main"};
  SnapshotBuilder builder;
  builder.segment_alloc(kA, 20 * kMiB);
  for (int step = 0; step < 2; ++step) {
    builder.python({{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"}, main});
    builder.alloc(kA, (step + 1) * kMiB).free(kA, (step + 1) * kMiB);
    builder.python({{"/v/site-packages/torch/optim/adam.py", 1, "_multi_tensor_adam"}, main});
    builder.alloc(kA, kMiB).free(kA, kMiB);
  }
  const Snapshot snapshot = builder.segment(kA, {{.size = 20 * kMiB}}).build();
  const std::unique_ptr<Verification> verification = verify(snapshot, 0);
  EXPECT_EQ(*peak_of_step(*verification, 1), 1U);
  EXPECT_EQ(*peak_of_step(*verification, 2), 7U);
  EXPECT_EQ(peak_of_step(*verification, 3).error().code, "step-not-found");
}

TEST(FindDifferences, OfARecordingWithItselfAreNone) {
  const Snapshot snapshot = two_steps(true);
  const std::unique_ptr<Verification> verification = verify(snapshot, 0);
  const Result<Diff> diff = find_differences(*verification, *verification, {});
  ASSERT_TRUE(diff.has_value());
  EXPECT_TRUE(diff->settings.empty());
  for (const DiffRow& row : diff->rows) EXPECT_EQ(row.delta(), 0);
}

TEST(FindDifferences, NameTheSettingsThatDiffer) {
  SnapshotBuilder builder;
  builder.segment_alloc(kA, 20 * kMiB).alloc(kA, 5 * kMiB).segment(kA, {live_block(5 * kMiB), {.size = 15 * kMiB}});
  const Snapshot b = builder.conf("max_split_size_mb:64").build();
  const Snapshot a = two_steps(true);
  const std::unique_ptr<Verification> of_a = verify(a, 0);
  const std::unique_ptr<Verification> of_b = verify(b, 0);
  const Result<Diff> diff = find_differences(*of_a, *of_b, {});
  ASSERT_TRUE(diff.has_value());
  ASSERT_FALSE(diff->settings.empty());
  EXPECT_EQ(diff->settings[0].id, "conf");
}

}  // namespace
}  // namespace oomscope
