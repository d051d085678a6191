// The phase of a failure, from frames and progress.
#include <gtest/gtest.h>

#include "analysis/text_facts.h"

namespace oomscope {
namespace {

TextPhase of(std::vector<TextFrame> frames, std::vector<std::string> before = {}) {
  TextMessage message;
  message.frames = std::move(frames);
  message.before = std::move(before);
  return phase_of(message);
}

TextFrame code(std::string line) { return {.file = "train.py", .function = "main", .code = std::move(line)}; }

TEST(TextPhase, IsToldByTheFrames) {
  EXPECT_EQ(of({code("loss.backward()")}).phase, Phase::backward);
  EXPECT_EQ(of({code("optimizer.step()")}).phase, Phase::optimizer_step);
  EXPECT_EQ(of({code("torch.save(model.state_dict(), path)")}).phase, Phase::saving);
  EXPECT_EQ(of({code("ckpt = torch.load(path)")}).phase, Phase::resume);
  EXPECT_EQ(of({code("model = AutoModel.from_pretrained(name)")}).phase, Phase::load);
  EXPECT_EQ(of({code("out = model.generate(ids)")}).phase, Phase::generation);
  EXPECT_EQ(of({code("loss = F.cross_entropy(logits, y)")}).phase, Phase::loss);
}

TEST(TextPhase, AStepWithAClosureIsWhatIsInside) {
  const TextFrame step{.file = "torch/optim/adamw.py", .function = "step", .code = "loss = closure()"};
  const TextFrame closure{.file = "closure.py", .function = "closure", .code = "return self._closure()"};
  const TextFrame forward{.file = "net.py", .function = "forward", .code = "return self.layers(x)"};
  const TextFrame backward{.file = "closure.py", .function = "backward", .code = "loss.backward()"};
  EXPECT_EQ(of({step, closure, forward}).phase, Phase::forward);
  EXPECT_EQ(of({step, closure, backward}).phase, Phase::backward);
  EXPECT_EQ(of({forward, step}).phase, Phase::optimizer_step);
  EXPECT_EQ(of({{.file = R"(C:\torch\optim\adamw.py)", .function = "adamw", .code = ""}}).phase, Phase::optimizer_step);
}

TEST(TextPhase, ANameThatSaysMoreDecidesNothing) {
  const auto in = [](std::string function) {
    return of({{.file = "t.py", .function = std::move(function), .code = "out = net(x)"}}).phase;
  };
  EXPECT_EQ(in("train_and_save_model"), Phase::forward);
  EXPECT_EQ(in("resume_training"), Phase::forward);
  EXPECT_EQ(in("test_train_step"), Phase::forward);
  EXPECT_EQ(in("save_model"), Phase::saving);
  EXPECT_EQ(in("test_epoch"), Phase::evaluation);
}

TEST(TextPhase, ABarInSecondsAStepIsAStep) {
  EXPECT_EQ(of({code("out = model(x)")}, {"Evaluating: 100%", "211/1000 [06:40<25:00, 1.90s/it]"}).phase,
            Phase::forward);
}

TEST(TextPhase, AValidationsForwardIsEvaluation) {
  EXPECT_EQ(of({{.file = "t.py", .function = "validate", .code = "out = model(x)"}}).phase, Phase::evaluation);
  EXPECT_EQ(of({code("out = model(x)")}, {"Epoch 3", "Validating: 3%"}).phase, Phase::evaluation);
}

TEST(TextPhase, OneFinishedStepIsTheSecond) {
  EXPECT_EQ(of({code("out = model(x)")}, {"1/100 [00:03<05:00, 3.00s/it]"}).phase, Phase::second_step);
  EXPECT_EQ(of({code("out = model(x)")}, {"7/100 [00:03<05:00, 3.00s/it]"}).phase, Phase::forward);
  EXPECT_EQ(of({code("loss.backward()")}, {"step 1 loss 4.2"}).phase, Phase::second_step);
}

TEST(TextPhase, AModelMadeAfterTrainingIsTheNextOne) {
  const TextPhase found = of({code("model.to(device)")}, {"epoch 9 loss 0.1"});
  EXPECT_EQ(found.phase, Phase::next_model);
  EXPECT_TRUE(found.after_training);
}

TEST(TextPhase, NothingToGoByIsUnknown) {
  EXPECT_EQ(of({}).phase, Phase::unknown);
  EXPECT_EQ(of({}, {"step 41 loss 1.0"}).step, 41);
}

}  // namespace
}  // namespace oomscope
