#include "evidence/text/frames.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

std::vector<TextFrame> frames_of(std::string_view text, std::optional<int> rank = std::nullopt) {
  return last_traceback(clean_lines(text), rank);
}

TEST(Frames, AWrappedLineIsOneFrame) {
  for (const char* text :
       {"Traceback (most recent call last):\n  File \"/home/u/tra\nin.py\", line 123, in step\n    loss.backward()\n",
        "Traceback (most recent call last):\n  File \"/home/u/train.py\", line\n123, in step\n    loss.backward()\n",
        "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 1\n23, in step\n    "
        "loss.backward()\n"}) {
    const std::vector<CleanLine> lines = clean_lines(text);
    const std::vector<TextFrame> frames = last_traceback(lines, std::nullopt);
    ASSERT_EQ(frames.size(), 1U) << text;
    EXPECT_EQ(frames[0].file, "/home/u/train.py") << text;
    EXPECT_EQ(frames[0].line, 123) << text;
    EXPECT_EQ(frames[0].function, "step") << text;
    EXPECT_EQ(frames[0].code, "loss.backward()") << text;
  }
}

TEST(Frames, ACellOfANotebookIsOne) {
  for (const char* head :
       {"Cell In[12], line 3", "Cell In [12], line 3, in train(net)", "Input In [12], in <cell line: 3>()"}) {
    const std::vector<TextFrame> frames =
        frames_of(std::string(head) + "\n      2 out = net(x)\n----> 3 out.backward()\n");
    ASSERT_EQ(frames.size(), 1U) << head;
    EXPECT_EQ(frames[0].line, 3) << head;
    EXPECT_EQ(frames[0].code, "out.backward()") << head;
  }
}

TEST(LastTraceback, KeepsTheLastOneOutermostFirst) {
  const std::vector<TextFrame> frames = frames_of(
      "Traceback (most recent call last):\n  File \"old.py\", line 1, in old\n    old()\n"
      "Traceback (most recent call last):\n  File \"train.py\", line 8, in main\n    loss.backward()\n"
      "  File \"/v/torch/_tensor.py\", line 5, in backward\n    engine(\n    ^^^^^^^\n");
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].file, "train.py");
  EXPECT_EQ(frames[0].line, 8);
  EXPECT_EQ(frames[0].code, "loss.backward()");
  EXPECT_EQ(frames[1].function, "backward");
  EXPECT_EQ(frames[1].code, "engine(");
}

TEST(LastTraceback, OfOneRankLeavesTheOthersLinesOut) {
  const std::string_view text =
      "[rank1]: Traceback (most recent call last):\n[rank0]: Traceback (most recent call last):\n"
      "[rank1]:   File \"one.py\", line 1, in one\n[rank0]:   File \"zero.py\", line 2, in zero\n";
  ASSERT_EQ(frames_of(text, 1).size(), 1U);
  EXPECT_EQ(frames_of(text, 1).front().file, "one.py");
  EXPECT_EQ(frames_of(text, 0).front().file, "zero.py");
}

TEST(LastTraceback, ReadsIPythonsArrowsAndFiles) {
  const std::vector<TextFrame> frames =
      frames_of("<ipython-input-7-ab12> in train(x)\n      3     y = x\n----> 4     out = model(y)\n");
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames.front().function, "train");
  EXPECT_EQ(frames.front().code, "out = model(y)");
  EXPECT_EQ(frames_of("File /v/nn/linear.py:114, in Linear.forward(self, x)\n").front().line, 114);
}

TEST(LastTraceback, IsBounded) {
  std::string deep = "Traceback (most recent call last):\n";
  for (int i = 0; i < 1000; ++i) deep += "  File \"a.py\", line " + std::to_string(i) + ", in f\n    f()\n";
  EXPECT_EQ(frames_of(deep).size(), kMostFrames);
  EXPECT_EQ(frames_of(deep).back().line, 999);
}

std::string error_of(std::string_view text) {
  const std::optional<LastError> error = last_error(clean_lines(text));
  return error ? error->name : "none";
}

TEST(LastErrorOfALog, EndsItsTraceback) {
  EXPECT_EQ(error_of("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nKeyError: 'id'\n"),
            "KeyError");
  EXPECT_EQ(error_of("json.decoder.JSONDecodeError: Expecting value\n"), "JSONDecodeError");
}

TEST(LastErrorOfALog, IsNoneOfMemoryAndNoneThatTheProgramSurvived) {
  const std::string head = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\n";
  EXPECT_EQ(error_of(head + "LimitError: no memory left for it\n"), "none");
  EXPECT_EQ(error_of(head + "the OOM of step 3 again\nJobError: gave up\n"), "none");
  std::string goes_on = head + "KeyError: 'id'\n";
  for (int i = 0; i < 50; ++i) goes_on += "step " + std::to_string(i) + "\n";
  EXPECT_EQ(error_of(goes_on), "none");
  EXPECT_EQ(error_of("a\nb\nc\nd\ne\nValueError: sample 3 is skipped\nf\n"), "none");
}

TEST(ProgressLines, AreTheLastOnesOldestFirst) {
  const std::vector<std::string> lines =
      progress_lines(clean_lines("Epoch 1/3\nnothing\n 10%|# | 1/10 [00:01<00:09, 1.0s/it]\nValidating\n"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines.front(), "Epoch 1/3");
  EXPECT_EQ(lines.back(), "Validating");
}

TEST(LastLine, SkipsBlanksAndUnderlines) { EXPECT_EQ(last_line(clean_lines("a = f(x)\n    ^^^^\n\n")), "a = f(x)"); }

TEST(LastTime, IsOfTheLastStampAndRefusesImpossibleDates) {
  EXPECT_EQ(last_time("2024-05-11 14:10:52,250 x 1970-01-01T00:01:00 y")->seconds, 60.0);
  EXPECT_EQ(last_time("1970-01-02 00:00:01.5")->seconds, 86401.5);
  EXPECT_EQ(last_time("2024-13-40 00:00:00"), std::nullopt);
}

TEST(LastTraceback, OfRich) {
  const std::vector<CleanLine> lines = clean_lines(
      "\u256D\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u256E\n"
      "\u2502 /root/train.py:88 in <module>              \u2502\n"
      "\u2502                                            \u2502\n"
      "\u2502   87 \u2502   loss = model(x)                      \u2502\n"
      "\u2502 \u2771 88 \u2502   loss.backward()                      \u2502\n"
      "\u2570\u2500\u2500\u256F\n");
  const std::vector<TextFrame> frames = last_traceback(lines, std::nullopt);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].file, "/root/train.py");
  EXPECT_EQ(frames[0].line, 88);
  EXPECT_EQ(frames[0].function, "<module>");
  EXPECT_EQ(frames[0].code, "loss.backward()");
}

TEST(LastTime, IsInUtcWhereItNamesItsZone) {
  const double noon = 12 * 3600;
  EXPECT_EQ(last_time("1970-01-01T14:00:00+02:00 stderr F x")->seconds, noon);
  EXPECT_EQ(last_time("1970-01-01T06:30:00-0530 x")->seconds, noon);
  EXPECT_EQ(last_time("1970-01-01T12:00:00.000000000Z x")->seconds, noon);
  EXPECT_TRUE(last_time("1970-01-01 12:00:00 UTC x")->has_zone);
  EXPECT_FALSE(last_time("1970-01-01 12:00:00 x")->has_zone);
  EXPECT_FALSE(last_time("1970-01-01 12:00:00 - 1234 - x")->has_zone);
}

TEST(LastTime, IsBeforeAnotherAsFarAsItsDigitsTell) {
  const auto time = [](const char* text) { return *last_time(text); };
  EXPECT_TRUE(is_surely_before(time("1970-01-01 00:00:01"), time("1970-01-01 00:00:02")));
  EXPECT_FALSE(is_surely_before(time("1970-01-01 00:00:01"), time("1970-01-01 00:00:01.5")));
  EXPECT_FALSE(is_surely_before(time("1970-01-01 00:00:01"), time("1970-01-01 00:00:02Z")));
}

}  // namespace
}  // namespace oomscope
