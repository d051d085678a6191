// Phases, passes and steps from stacks and annotations, on runs of a few lines.
#include "model/structure.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frames = std::vector<SnapshotBuilder::PythonFrame>;

constexpr uint64_t kA = 0x7f0000000000;
constexpr int64_t kKiB = 1024;

int64_t to_512(int64_t request) { return (request + 511) / 512 * 512; }

// The stacks of one training step, as PyTorch's frames look.
const SnapshotBuilder::PythonFrame kMain{"/home/u/train.py", 10, "main"};
const SnapshotBuilder::PythonFrame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_wrapped_call_impl"};
const Frames kBatch = {{"/home/u/train.py", 8, "batch"}, kMain};
const Frames kForward = {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"}, kCall, kMain};
const Frames kLoss = {{"/v/site-packages/torch/nn/functional.py", 1, "cross_entropy"}, kMain};
const Frames kStep = {{"/v/site-packages/torch/optim/adam.py", 1, "_init_group"},
                      {"/v/site-packages/torch/optim/optimizer.py", 1, "wrapper"},
                      kMain};
const Frames kMove = {{"/v/site-packages/torch/nn/modules/module.py", 5, "_apply"}, kMain};
const Frames kEvaluate = {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"},
                          kCall,
                          {"/home/u/train.py", 30, "validate"},
                          {"/home/u/train.py", 12, "main"}};

class Job {
 public:
  // Requests that live on, one behind another.
  Job& asks(const Frames& frames, int times = 1) {
    frames.empty() ? builder_.called_from_nowhere() : builder_.python(frames);
    for (int i = 0; i < times; ++i) builder_.alloc(kA + static_cast<uint64_t>(next_++) * 65536, kKiB);
    return *this;
  }
  Job& step_of_training() { return asks(kBatch).asks(kForward, 2).asks(kLoss).asks({}, 3).asks(kStep); }
  // An annotation that begins or ends with the next request.
  Job& mark(std::string_view name, bool is_start) {
    marks_.push_back({std::string(name), is_start, next_});
    return *this;
  }
  Job& without_times() {
    has_times_ = false;
    return *this;
  }
  Structure structure() {
    snapshot_ = builder_.build();
    if (!has_times_) snapshot_.traces[0].time_us.clear();
    for (const auto& [name, is_start, time] : marks_) {
      snapshot_.annotations.push_back(
          {.name = snapshot_.strings.intern(name), .is_start = is_start, .device = 0, .time_us = time});
    }
    timeline_ = build_timeline(snapshot_, 0, {.round = to_512});
    return find_structure(timeline_);
  }

 private:
  struct Mark {
    std::string name;
    bool is_start;
    int time;
  };
  SnapshotBuilder builder_;
  std::vector<Mark> marks_;
  Snapshot snapshot_;
  Timeline timeline_;
  int next_ = 0;
  bool has_times_ = true;
};

std::vector<Phase> phases_of(const Structure& structure) {
  std::vector<Phase> phases;
  for (const Span& span : structure.spans) phases.push_back(span.phase);
  return phases;
}

TEST(Structure, NamesThePhasesOfAStep) {
  const Structure structure = Job().asks(kMove).step_of_training().structure();
  EXPECT_EQ(phases_of(structure), (std::vector<Phase>{Phase::load, Phase::data_loading, Phase::forward, Phase::loss,
                                                      Phase::backward, Phase::optimizer_step}));
}

TEST(Structure, PlacesFramelessRequestsInTheBackwardBehindAForward) {
  const Structure structure = Job().step_of_training().structure();
  EXPECT_EQ(structure.frameless_requests, 3);
  EXPECT_EQ(structure.frameless_placed, 3);
}

TEST(Structure, CountsStepsAndPasses) {
  const Structure structure = Job().step_of_training().step_of_training().step_of_training().structure();
  EXPECT_EQ(structure.step_ends.size(), 3u);
  ASSERT_EQ(structure.passes.size(), 3u);
  EXPECT_TRUE(structure.passes[2].has_backward);
  EXPECT_EQ(structure.passes[2].step, 3);
}

TEST(Structure, PassFromAnotherLineWithoutBackwardIsItsOwn) {
  const Structure structure = Job().step_of_training().asks(kEvaluate, 2).structure();
  ASSERT_EQ(structure.passes.size(), 2u);
  EXPECT_FALSE(structure.passes[1].has_backward);
  EXPECT_NE(structure.passes[0].call, structure.passes[1].call);
  EXPECT_TRUE(structure.passes[1].says_evaluation);
}

TEST(Structure, ModelMadeBehindPassesIsTheNext) {
  const Structure structure = Job().asks(kMove).step_of_training().asks(kMove).structure();
  EXPECT_EQ(structure.spans.back().phase, Phase::next_model);
}

TEST(Structure, RecomputedForwardIsBackward) {
  Frames recompute = kForward;
  recompute.back() = {"/v/site-packages/torch/utils/checkpoint.py", 1, "recompute_fn"};
  const Structure structure = Job().asks(kForward).asks({}).asks(recompute).structure();
  EXPECT_EQ(phases_of(structure), (std::vector<Phase>{Phase::forward, Phase::backward}));
}

TEST(Structure, AnnotationsMayEndInAnyOrder) {
  const Structure structure = Job()
                                  .asks(kMove)
                                  .mark("oomscope.phase:saving", true)
                                  .mark("oomscope.phase:evaluation", true)
                                  .asks(kBatch)
                                  .mark("oomscope.phase:saving", false)
                                  .asks(kBatch)
                                  .mark("oomscope.phase:evaluation", false)
                                  .mark("oomscope.phase:resume", false)
                                  .mark("oomscope.phase:load", true)
                                  .asks(kBatch)
                                  .structure();
  EXPECT_EQ(phases_of(structure), (std::vector<Phase>{Phase::load, Phase::evaluation, Phase::load}));
}

// Each of these took time squared once: minutes.
TEST(Structure, AnnotationsOfEventsWithoutTimesAreNotPlaced) {
  const Structure marked = Job().mark("oomscope.phase:saving", true).step_of_training().without_times().structure();
  EXPECT_EQ(phases_of(marked), phases_of(Job().step_of_training().structure()));
}

TEST(Structure, ManyAnnotationsAndSpansTakeLinearTime) {
  constexpr int kMany = 100000;
  Job job;
  job.asks(kMove);
  for (int i = 0; i < kMany; ++i) job.mark("oomscope.phase:saving", true);
  for (int i = 0; i < kMany; ++i) job.mark("oomscope.phase:evaluation", true);
  for (int i = 0; i < kMany; ++i) job.mark("oomscope.phase:saving", false);
  EXPECT_EQ(phases_of(job.asks(kBatch).structure()), (std::vector<Phase>{Phase::load, Phase::evaluation}));
}

TEST(MarkedStep, IsTheNumberBehindTheName) {
  EXPECT_EQ(marked_step("oomscope.step:12"), 12);
  EXPECT_EQ(marked_step("ProfilerStep#3"), 3);
  for (std::string_view name : {"oomscope.step:", "oomscope.step:x", "ProfilerStep#3a", "Optimizer.step#Adam.step"}) {
    EXPECT_EQ(marked_step(name), std::nullopt) << name;
  }
}

TEST(Structure, WithoutFramesNothingIsKnown) {
  const Structure structure = Job().asks({}, 4).structure();
  EXPECT_EQ(phases_of(structure), std::vector<Phase>{Phase::unknown});
  EXPECT_EQ(structure.confidence, Confidence::low);
}

TEST(Structure, SpansFollowEachOtherWithoutGaps) {
  const Structure structure = Job().asks(kMove).step_of_training().asks(kEvaluate).step_of_training().structure();
  uint32_t at = 0;
  for (const Span& span : structure.spans) {
    EXPECT_EQ(span.begin, at);
    at = span.end;
  }
  EXPECT_EQ(at, structure.span_of.size());
}

}  // namespace
}  // namespace oomscope
