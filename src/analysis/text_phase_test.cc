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

TEST(TextPhase, ABarOfLoadingIsNoTraining) {
  EXPECT_EQ(of({}, {"Loading checkpoint shards: 33%|#| 1/3 [00:10<00:20, 10.0s/it]"}).phase, Phase::load);
}

TextFrame in(std::string file, std::string function, std::string line = "") {
  return {.file = std::move(file), .function = std::move(function), .code = std::move(line)};
}

TEST(TextPhase, AnAverageIsNoCheckpoint) {
  EXPECT_EQ(of({code("ema.update(model.state_dict())")}, {"step 9 loss 1.0"}).phase, Phase::between_steps);
  EXPECT_EQ(of({code("self.ema_model = deepcopy(model)")}, {"step 9 loss 1.0"}).phase, Phase::between_steps);
  EXPECT_EQ(of({code("torch.save(ema.state_dict(), path)")}).phase, Phase::saving);
  EXPECT_EQ(of({code("schema = load(model.state_dict())")}).phase, Phase::saving);
}

TEST(TextPhase, ACopyOfAModelIsMadeBeforeTrainingOrBesideIt) {
  const TextFrame copy = in("/usr/lib/python3/copy.py", "deepcopy", "y = copier(memo)");
  EXPECT_EQ(of({code("target = copy.deepcopy(net)"), copy}).phase, Phase::load);
  EXPECT_EQ(of({code("target = copy.deepcopy(net)"), copy}, {"epoch 3 loss 0.2"}).phase, Phase::between_steps);
  EXPECT_EQ(of({code("best = deepcopy(net.state_dict())"), copy}, {"epoch 3 loss 0.2"}).phase, Phase::saving);
}

TEST(TextPhase, AStepThatMakesItsStateIsTheFirst) {
  const TextFrame step = in("torch/optim/adamw.py", "step", "self._init_group(");
  const TextPhase made =
      of({step, in("torch/optim/adamw.py", "_init_group", "state[\"exp_avg\"] = torch.zeros_like(")});
  EXPECT_EQ(made.phase, Phase::optimizer_step);
  EXPECT_TRUE(made.is_first);
  EXPECT_FALSE(of({step, in("torch/optim/adamw.py", "_multi_tensor_adamw", "torch._foreach_sqrt(x)")}).is_first);
}

TEST(TextPhase, ABarAtNothingIsTheFirstStep) {
  EXPECT_TRUE(of({code("out = model(x)")}, {"0%| 0/100 [00:00<?, ?it/s]"}).is_first);
  EXPECT_FALSE(of({code("out = model(x)")}, {"4%| 4/100 [00:00<?, ?it/s]"}).is_first);
}

TEST(TextPhase, AnyOptimizersStepIsOne) {
  EXPECT_EQ(of({code("opt_g.step()")}).phase, Phase::optimizer_step);
  EXPECT_EQ(of({code("scaler.step(optimizer_d)")}).phase, Phase::optimizer_step);
  EXPECT_NE(of({code("scheduler.step()")}).phase, Phase::optimizer_step);
}

TEST(TextPhase, AModelGivenToWhatSpreadsItIsLoading) {
  EXPECT_EQ(of({code("model = DDP(model)"), in("torch/nn/parallel/distributed.py", "_ddp_init_helper")}).phase,
            Phase::load);
  EXPECT_EQ(of({code("net = nn.DataParallel(net)")}).phase, Phase::load);
  EXPECT_EQ(of({code("out = net(x)"), in("torch/nn/parallel/data_parallel.py", "forward"),
                in("torch/nn/parallel/replicate.py", "replicate")})
                .phase,
            Phase::forward);
}

TEST(TextPhase, NothingToGoByIsUnknown) {
  EXPECT_EQ(of({}).phase, Phase::unknown);
  EXPECT_EQ(of({}, {"step 41 loss 1.0"}).step, 41);
}

}  // namespace
}  // namespace oomscope
