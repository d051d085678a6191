// What an allocation is, from where it was born and when it died.
#include "model/categories.h"

#include <gtest/gtest.h>

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

TEST(Categories, SumToWhatIsLive) {
  Step step = one_step();
  const std::vector<AllocationCategory> found = step.categories();
  Timeline timeline = step.timeline();
  for (Allocation& allocation : timeline.allocations) allocation.size = to_512(allocation.requested);
  const CategorySums sums = sum_categories(timeline, found, 5);
  int64_t sum = sums.rounding_at;
  for (int64_t bytes : sums.at) sum += bytes;
  EXPECT_EQ(sum, kWeight + 4096 + kActivation);
}

}  // namespace
}  // namespace oomscope
