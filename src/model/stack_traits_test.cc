// What stacks say, and what they only seem to.
#include "model/stack_traits.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frame = SnapshotBuilder::PythonFrame;

const Frame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_wrapped_call_impl"};
const Frame kLinear{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"};
const Frame kMain{"/home/u/train.py", 10, "main"};

StackTraits traits_of(const std::vector<Frame>& frames) {
  SnapshotBuilder builder;
  builder.python(frames).alloc(0x7f0000000000, 512);
  return stack_traits(builder.build()).back();
}

TEST(StackTraits, AnOptimizersStep) {
  EXPECT_EQ(traits_of({{"/v/site-packages/torch/optim/adam.py", 1, "_multi_tensor_adam"}, kMain}).role,
            StackRole::optimizer);
  EXPECT_EQ(traits_of({{"/v/site-packages/bitsandbytes/optim/optimizer.py", 1, "update_step"}, kMain}).role,
            StackRole::optimizer);
  EXPECT_TRUE(traits_of({{"/home/u/fused_adam.py", 1, "step"}, kMain}).has(Trait::own_optimizer));
  // Its own class, in any file: PyTorch wraps the step of each subclass.
  EXPECT_EQ(
      traits_of({{"/home/u/train.py", 3, "step"}, {"/v/site-packages/torch/optim/optimizer.py", 1, "wrapper"}, kMain})
          .role,
      StackRole::optimizer);
}

TEST(StackTraits, AFileThatOnlySoundsLikeAnOptimizer) {
  for (std::string_view file : {"/home/u/train_adam.py", "/home/u/optimized_model.py", "/home/u/adamant.py"}) {
    EXPECT_EQ(traits_of({{file, 1, "step"}, kMain}).role, StackRole::user) << file;
    EXPECT_EQ(traits_of({{file, 1, "train_adam"}, kMain}).role, StackRole::user) << file;
    EXPECT_EQ(traits_of({{file, 1, "forward"}, kCall, kMain}).role, StackRole::forward) << file;
  }
  // A model beside an optimizer.
  EXPECT_EQ(traits_of({{"/home/u/optimizer.py", 1, "forward"}, kCall, kMain}).role, StackRole::forward);
}

TEST(StackTraits, EvaluationIsWhatCallsTheModel) {
  EXPECT_TRUE(traits_of({kLinear, kCall, {"/home/u/train.py", 3, "validate"}, kMain}).has(Trait::evaluation));
  EXPECT_TRUE(traits_of({kLinear, kCall, {"/home/u/train.py", 3, "run_eval"}, kMain}).has(Trait::evaluation));
  EXPECT_FALSE(traits_of({kLinear, kCall, {"/home/u/train.py", 3, "retrieval"}, kMain}).has(Trait::evaluation));
  // A detector's forward goes through its own predict().
  EXPECT_FALSE(traits_of({kLinear,
                          kCall,
                          {"/v/site-packages/yolo/tasks.py", 3, "predict"},
                          {"/v/site-packages/yolo/tasks.py", 2, "forward"},
                          kCall,
                          kMain})
                   .has(Trait::evaluation));
}

TEST(StackTraits, TheInnermostFrameThatTellsDecides) {
  EXPECT_EQ(traits_of({kLinear, kCall, kMain}).role, StackRole::forward);
  EXPECT_EQ(traits_of({kMain}).role, StackRole::user);
  EXPECT_EQ(traits_of({kLinear, kCall, {"/v/site-packages/torch/utils/checkpoint.py", 1, "recompute_fn"}, kMain}).role,
            StackRole::backward);
  EXPECT_EQ(traits_of({{"/v/site-packages/torch/nn/functional.py", 1, "cross_entropy"}, kMain}).role, StackRole::loss);
}

}  // namespace
}  // namespace oomscope
