// One convolution of 12 MiB of weights, from 20 MiB to 40 MiB, with the scratch of several kernels.
#include "plan/conv_scratch.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint64_t kBase = 0x7f0000000000;
constexpr int64_t kWeight = 12 * kMiB;
constexpr int64_t kInput = 20 * kMiB;
constexpr int64_t kOutput = 40 * kMiB;

struct Recording {
  Snapshot snapshot;
  std::unique_ptr<Verification> verification;
  Structure structure;
  RequestLog log;
};

std::unique_ptr<Recording> convolution(int64_t scratch) {
  SnapshotBuilder b;
  const auto ask = [&](int slot, int64_t bytes) {
    const uint64_t address = kBase + static_cast<uint64_t>(slot) * 0x40000000;
    b.segment_alloc(address, bytes).alloc(address, bytes);
  };
  b.python({{"/v/site-packages/torch/nn/modules/module.py", 5, "_apply"}, {"/home/u/train.py", 3, "main"}});
  ask(0, kWeight);
  b.python({{"/home/u/train.py", 10, "main"}});
  ask(1, kInput);
  b.python({{"/v/site-packages/torch/nn/modules/conv.py", 548, "_conv_forward"},
            {"/v/site-packages/torch/nn/modules/module.py", 1, "_call_impl"},
            {"/home/u/train.py", 11, "main"}});
  ask(2, kOutput);
  ask(3, scratch);
  b.free(kBase + 3 * uint64_t{0x40000000}, scratch);
  auto recording = std::make_unique<Recording>();
  recording->snapshot = b.build();
  recording->verification = verify(recording->snapshot, 0, {.limit_bytes = {}, .rules = default_rule_set()});
  recording->structure = find_structure(recording->verification->timeline);
  recording->log = request_log(*recording->verification, recording->structure, frame_hashes(recording->snapshot));
  return recording;
}

std::vector<ConvScratch> scratch_of(int64_t bytes) {
  const std::unique_ptr<Recording> recording = convolution(bytes);
  return find_conv_scratch(recording->log, recording->structure);
}

TEST(ConvScratch, CopiesOfAllOperandsGrowWithInputAndOutput) {
  const std::vector<ConvScratch> found = scratch_of(kInput + kOutput + kWeight);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].is_explained);
  EXPECT_FALSE(found[0].may_change);
  EXPECT_EQ(found[0].size.copied.size(), 2U);
  EXPECT_EQ(found[0].size.fixed, kWeight);
}

TEST(ConvScratch, AKernelThatCopiesTheInputAloneMayBeFollowedByOneThatCopiesAll) {
  const std::vector<ConvScratch> found = scratch_of(kInput + kWeight);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].size.copied.size(), 1U);
  EXPECT_TRUE(found[0].may_change);
  EXPECT_EQ(found[0].large.copied.size(), 2U);
}

TEST(ConvScratch, OtherSizesAreNotExplained) {
  EXPECT_TRUE(scratch_of(150 * kMiB).empty());  // whole rows: a tensor, no workspace
  for (const ConvScratch& found : scratch_of(kInput / 2 + 4)) EXPECT_FALSE(found.is_explained);
}

}  // namespace
}  // namespace oomscope
