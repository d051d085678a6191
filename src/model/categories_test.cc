// What an allocation is, from where it was born and when it died.
#include "model/categories.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frames = std::vector<SnapshotBuilder::PythonFrame>;

constexpr uint64_t kA = 0x7f0000000000;
constexpr int64_t kWeight = 3 * 4096;
constexpr int64_t kActivation = 5 * 4096;

int64_t to_512(int64_t request) { return (request + 511) / 512 * 512; }

const SnapshotBuilder::PythonFrame kMain{"/home/u/train.py", 10, "main"};
const SnapshotBuilder::PythonFrame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_wrapped_call_impl"};
const Frames kForward = {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"}, kCall, kMain};
const Frames kBatch = {{"/home/u/train.py", 8, "batch"}, kMain};
const Frames kMove = {{"/v/site-packages/torch/nn/modules/module.py", 5, "_apply"}, kMain};
const Frames kInit = {{"/v/site-packages/torch/optim/adam.py", 1, "_init_group"}, kMain};
const Frames kMultiTensor = {{"/v/site-packages/torch/optim/adam.py", 9, "_multi_tensor_adam"}, kMain};
const Frames kZeroGrad = {{"/v/site-packages/torch/optim/optimizer.py", 7, "zero_grad"}, kMain};

// A training step of one weight: allocation by name, in the order of birth.
class Step {
 public:
  Step& alloc(const Frames& frames, int address, int64_t size) {
    at(frames).alloc(kA + static_cast<uint64_t>(address) * 65536, size);
    return *this;
  }
  // From the stack of the event before.
  Step& again(int address, int64_t size) {
    builder_.alloc(kA + static_cast<uint64_t>(address) * 65536, size);
    return *this;
  }
  Step& free(const Frames& frames, int address, int64_t size) {
    at(frames).free(kA + static_cast<uint64_t>(address) * 65536, size);
    return *this;
  }
  std::vector<AllocationCategory> categories() {
    snapshot_ = builder_.build();
    timeline_ = build_timeline(snapshot_, 0, {.round = to_512});
    return find_categories(timeline_, find_structure(timeline_));
  }
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }

 private:
  SnapshotBuilder& at(const Frames& frames) {
    return frames.empty() ? builder_.called_from_nowhere() : builder_.python(frames);
  }
  SnapshotBuilder builder_;
  Snapshot snapshot_;
  Timeline timeline_;
};

Step one_step() {
  Step step;
  step.alloc(kMove, 0, kWeight)
      .alloc(kBatch, 1, 4096)
      .alloc(kForward, 2, kActivation)
      .alloc(kForward, 3, 2 * kActivation)
      .free(kForward, 3, 2 * kActivation)
      .alloc({}, 4, kWeight)
      .alloc({}, 5, kActivation)
      .free({}, 5, kActivation)
      .free({}, 2, kActivation)
      .alloc(kInit, 6, kWeight)
      .alloc(kInit, 7, kWeight)
      .alloc(kMultiTensor, 8, kWeight)
      .free(kMultiTensor, 8, kWeight)
      .free(kZeroGrad, 4, kWeight)
      .alloc(kBatch, 9, 4096);
  return step;
}

TEST(Categories, OfAWholeStep) {
  Step step = one_step();
  std::vector<Category> found;
  for (const AllocationCategory& category : step.categories()) found.push_back(category.category);
  EXPECT_EQ(found,
            (std::vector<Category>{Category::parameter, Category::input, Category::activation, Category::temporary,
                                   Category::gradient, Category::temporary, Category::optimizer_state,
                                   Category::optimizer_state, Category::temporary, Category::unknown}));
}

TEST(Categories, EachSaysWhy) {
  Step step = one_step();
  const std::vector<AllocationCategory> found = step.categories();
  EXPECT_EQ(found[0].reason, CategoryReason::model_frames);
  EXPECT_EQ(found[4].reason, CategoryReason::size_of_parameter);
  EXPECT_EQ(found[6].reason, CategoryReason::optimizer_frames);
}

TEST(Categories, InMidLifeSizesTell) {
  // Freed at the end, so that the recording knows them: three blocks of the gradient's size were there before.
  Step step;
  step.alloc(kForward, 2, kActivation)
      .alloc({}, 4, kWeight)
      .free({}, 2, kActivation)
      .alloc(kMultiTensor, 8, kWeight)
      .free(kMultiTensor, 8, kWeight)
      .free(kZeroGrad, 4, kWeight)
      .alloc(kBatch, 9, 4096)
      .free(kBatch, 20, kWeight)
      .free(kBatch, 21, kWeight)
      .free(kBatch, 22, kWeight);
  const std::vector<AllocationCategory> found = step.categories();
  std::vector<Category> start;
  for (size_t i = 0; i < found.size(); ++i) {
    if (step.timeline().allocations[i].begin == kNoEvent) start.push_back(found[i].category);
  }
  EXPECT_EQ(start, (std::vector<Category>{Category::parameter, Category::optimizer_state, Category::optimizer_state}));
}

// --- workspaces: 32 MiB is what cuBLAS keeps on Hopper, and what a bf16 tensor of 4096 x 4096 takes ---------------

constexpr int64_t k32MiB = 32 << 20;
constexpr int kFar = 1024;  // addresses that far apart hold 32 MiB

int64_t workspaces(const std::vector<AllocationCategory>& found) {
  return std::count_if(found.begin(), found.end(),
                       [](const AllocationCategory& each) { return each.category == Category::workspace; });
}

Frames linear_called_from(uint64_t line) {
  return {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"}, kCall, {"/home/u/train.py", line, "main"}};
}

TEST(Categories, ALibraryKeepsOneWorkspaceOfAStream) {
  Step step;
  step.alloc(kMove, 0, kWeight);
  for (int pass = 0; pass < 3; ++pass) {
    step.alloc(kForward, kFar, k32MiB);  // the output
    if (pass == 0) step.alloc(kForward, 2 * kFar, k32MiB);
    step.alloc({}, 4, kWeight).free({}, kFar, k32MiB);
    if (pass == 0) step.alloc({}, 3 * kFar, k32MiB);
    step.alloc(kMultiTensor, 8, kWeight).free(kMultiTensor, 8, kWeight).free(kZeroGrad, 4, kWeight);
  }
  const std::vector<AllocationCategory> found = step.alloc(kBatch, 9, 4096).categories();
  EXPECT_EQ(workspaces(found), 2);
  EXPECT_EQ(found[2].category, Category::workspace);
  EXPECT_EQ(found[4].category, Category::workspace);
}

TEST(Categories, OutputsOfAWorkspacesSizeAreActivations) {
  Step loop;  // one line calls all layers
  Step lines;
  for (int i = 1; i <= 20; ++i) {
    i == 1 ? loop.alloc(kForward, i * kFar, k32MiB) : loop.again(i * kFar, k32MiB);
    lines.alloc(linear_called_from(static_cast<uint64_t>(i)), i * kFar, k32MiB);
  }
  EXPECT_EQ(workspaces(loop.alloc({}, 1, kWeight).categories()), 0);
  EXPECT_LE(workspaces(lines.alloc({}, 1, kWeight).categories()), 1);
}

TEST(Categories, InMidLifeWeightsOfAWorkspacesSizeAreParameters) {
  constexpr int64_t k4MiB = 4 << 20;
  const auto from_start = [&](int blocks) {
    Step step;
    step.alloc(kForward, 2, kActivation).alloc({}, 4, kWeight).free({}, 2, kActivation).alloc(kMultiTensor, 5, kWeight);
    for (int i = 1; i <= blocks; ++i) step.free(kBatch, i * kFar, k4MiB);
    return workspaces(step.categories());
  };
  EXPECT_EQ(from_start(2), 2);
  EXPECT_EQ(from_start(9), 0);
}

TEST(Categories, GradientsOfAWorkspacesSizeAreGradients) {
  Step step;
  step.alloc(kForward, 2, kActivation);
  for (int i = 1; i <= 9; ++i) step.alloc({}, i * kFar, k32MiB);
  const std::vector<AllocationCategory> found = step.free({}, 2, kActivation).alloc(kMultiTensor, 5, 512).categories();
  EXPECT_EQ(workspaces(found), 0);
}

TEST(Categories, SumToWhatIsLive) {
  Step step = one_step();
  const std::vector<AllocationCategory> found = step.categories();
  Timeline timeline = step.timeline();
  for (size_t id = 0; id < timeline.allocations.size(); ++id) {
    timeline.allocations.set_size(id, to_512(timeline.allocations[id].requested));
  }
  const CategorySums sums = sum_categories(timeline, found, 5);
  int64_t sum = sums.rounding_at;
  for (int64_t bytes : sums.at) sum += bytes;
  EXPECT_EQ(sum, kWeight + 4096 + kActivation);
}

}  // namespace
}  // namespace oomscope
