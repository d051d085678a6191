// Messages in what logs make of them: wrapped, prefixed, coloured, quoted, mixed with other ranks' lines.
#include <gtest/gtest.h>

#include <algorithm>

#include "evidence/text/text_reader.h"
#include "support/text_messages.h"

namespace oomscope {
namespace {

std::string wrapped_at(const std::string& text, size_t columns, const std::string& newline) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += columns) out += text.substr(at, columns) + newline;
  return out;
}

TEST(Surroundings, AMessageMayBeWrappedAnywhere) {
  for (size_t columns = 20; columns < 140; ++columns) {
    const TextEvidence evidence = read_text("before\n" + wrapped_at(kNew, columns, "\n") + "after\n", "test");
    ASSERT_FALSE(evidence.messages.empty()) << columns;
    expect_new(evidence.messages.front());
    EXPECT_EQ(evidence.messages.front().line, 2) << columns;
  }
}

// At blanks, as editors and mail do; a word longer than the width is broken.
std::string wrapped_at_words(const std::string& text, size_t columns, const std::string& newline) {
  std::string out;
  std::string line;
  std::string_view rest = text;
  const auto end_line = [&] {
    out += line + newline;
    line.clear();
  };
  while (!rest.empty()) {
    const size_t length = std::min(rest.find_first_of(" \n"), rest.size());
    std::string word(rest.substr(0, length));
    if (!line.empty() && line.size() + 1 + word.size() > columns) end_line();
    for (; word.size() > columns; word.erase(0, columns)) {
      line = word.substr(0, columns);
      end_line();
    }
    line += (line.empty() ? "" : " ") + word;
    if (length < rest.size() && rest[length] == '\n') end_line();
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  end_line();
  return out;
}

// What a reader takes from a message; how much of it is quoted may depend on the width.
std::string said_by(const TextMessage& message) {
  std::string text = std::string(message.id) + ", torch " + std::string(message.vintage) + ", hint " + message.hint;
  for (size_t i = 0; i < kFigures; ++i) {
    if (message.figures.values[i])
      text += " " + std::string(name_of(static_cast<Figure>(i))) + "=" + std::to_string(*message.figures.values[i]);
  }
  for (const auto& [pid, bytes] : message.processes)
    text += " process " + std::to_string(pid) + "=" + std::to_string(bytes);
  return text + " gpu " + std::to_string(message.gpu.value_or(-1)) + " pid " + std::to_string(message.pid.value_or(-1));
}

// Of the strongest message in lines [from, to): a verdict rests on it.
std::string said_between(const TextEvidence& evidence, int64_t from, int64_t to) {
  const TextMessage* strongest = nullptr;
  for (const TextMessage& message : evidence.messages) {
    if (message.line < from || message.line >= to) continue;
    if (strongest == nullptr || message.strength > strongest->strength) strongest = &message;
  }
  return strongest == nullptr ? "" : said_by(*strongest);
}

int64_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Between two texts, so that neither is read as part of the other.
std::string nothing() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a line of figures and words without any meaning\n";
  return text;
}

size_t longest_word(std::string_view text) {
  size_t longest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

class Wrapped : public testing::TestWithParam<Example> {
 protected:
  // At widths from 20 to 120 columns (each seventh, another one a template), all in one text: reading one costs more
  // than its length.
  static void expect_same(bool at_words, const std::string& prefix) {
    constexpr size_t kStep = 7;
    const std::string text(GetParam().text);
    // A logger's lines break between words.
    const size_t first = prefix.empty() ? 20 + text.size() % kStep : std::max<size_t>(longest_word(text), 20);
    const std::string expected = said_between(read_text(text + "\n" + nothing(), "test"), 0, 100);
    std::string all;
    std::vector<int64_t> begins = {1};
    for (size_t columns = first; columns <= std::min<size_t>(text.size(), 120); columns += kStep) {
      std::string lines = at_words ? wrapped_at_words(text, columns, "\n") : wrapped_at(text, columns, "\n");
      for (size_t at = 0; !prefix.empty() && at < lines.size(); at = lines.find('\n', at) + 1) lines.insert(at, prefix);
      all += lines + nothing();
      begins.push_back(count_lines(all) + 1);
    }
    const TextEvidence evidence = read_text(all, "test");
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      EXPECT_EQ(said_between(evidence, begins[i], begins[i + 1]), expected)
          << text << "\nat " << first + i * kStep << " columns" << (at_words ? ", at words" : "")
          << (prefix.empty() ? "" : ", prefixed");
    }
  }
};

TEST_P(Wrapped, SaysTheSameAtAnyWidth) {
  if (GetParam().id.starts_with("printed.")) return;  // a bare number at the end of a line is a whole one
  expect_same(/*at_words=*/false, "");
  expect_same(/*at_words=*/true, "");
}

TEST_P(Wrapped, SaysTheSameBehindPrefixes) {
  if (GetParam().id.starts_with("printed.")) return;
  expect_same(/*at_words=*/true, "[rank7]: ");
}

INSTANTIATE_TEST_SUITE_P(Templates, Wrapped, testing::ValuesIn(kExamples));

TEST(Surroundings, ASettingInAHintIsNoneAtAnyWidth) {
  for (size_t columns = 20; columns <= 120; ++columns) {
    for (const std::string& text : {wrapped_at(kNew, columns, "\n"), wrapped_at_words(kNew, columns, "\n")})
      EXPECT_FALSE(read_text(text, "test").surroundings.expandable_segments) << columns;
  }
  for (size_t columns = 20; columns <= 60; ++columns) {
    const std::string set = "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True\n";
    EXPECT_TRUE(read_text(wrapped_at(set, columns, "\n") + kNew, "test").surroundings.expandable_segments) << columns;
  }
}

TEST(Surroundings, PrefixesColoursQuotesAndCrlf) {
  std::string prefixed;
  std::string coloured;
  for (size_t at = 0; at < kNew.size(); at += 90) {
    prefixed += "[rank5]: 2031-02-03 04:05:06,789 | ERROR | stderr | " + kNew.substr(at, 90) + "\r\n";
    coloured += "> \x1b[0;31m" + kNew.substr(at, 90) + "\x1b[0m\n";
  }
  const TextMessage message = only(prefixed);
  expect_new(message);
  EXPECT_EQ(message.rank, 5);
  expect_new(only(coloured));
}

TEST(Surroundings, EscapedLineBreaks) { expect_new(only(R"({"log": "step 1\nstep 2\n)" + kNew + R"(\nend\n"})")); }

TEST(Surroundings, Utf16AndGarbageBytes) {
  std::string utf16 = "\xFF\xFE";
  for (char c : kNew) utf16 += std::string{c, '\0'};
  expect_new(only(utf16));
  expect_new(only("\xC4\xE3\xBA\xC3 \xFF\x80 " + kNew + " \xC4\xE3"));
}

TEST(Surroundings, WrappedLinesOfTwoRanksBetweenEachOther) {
  std::string text;
  const std::string other =
      "CUDA out of memory. Tried to allocate 5.00 GiB. GPU 1 has a total capacity of 9.00 GiB of which 2.00 GiB is "
      "free. Of the allocated memory 6.50 GiB is allocated by PyTorch, and 8.00 MiB is reserved by PyTorch but "
      "unallocated.";
  for (size_t at = 0; at < kNew.size(); at += 70) {
    text += "[rank0]: " + kNew.substr(at, 70) + "\n";
    if (at < other.size()) text += "[rank1]: " + other.substr(at, 70) + "\n";
  }
  const TextEvidence evidence = read_text(text, "test");
  ASSERT_EQ(evidence.messages.size(), 2U);
  expect_new(evidence.messages[0]);
  EXPECT_EQ(evidence.messages[0].rank, 0);
  EXPECT_EQ(evidence.messages[1].rank, 1);
  EXPECT_EQ(figure(evidence.messages[1], Figure::tried), 5 * kGiB);
  EXPECT_EQ(figure(evidence.messages[1], Figure::allocated), 6.5 * kGiB);
  EXPECT_EQ(evidence.messages[1].excerpt.find("3.00"), std::string::npos);
}

TEST(Surroundings, BlanksOfOtherKindsAndColoursWithin) {
  const auto with = [](std::string text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  expect_new(only(with(kNew, " ", "\xC2\xA0")));
  expect_new(only(with(kNew, " ", "\t")));
  EXPECT_EQ(only("CUDA error: \x1b[31mout of\x1b[0m memory").id, "cuda.error");
}

TEST(Surroundings, FramesOfALineWithEscapedBreaks) {
  const TextMessage message =
      only(R"({"log": "Traceback (most recent call last):\n  File \"a.py\", line 3, in main\n    loss.backward()\n)" +
           kNew + R"(\n"})");
  ASSERT_EQ(message.frames.size(), 1U);
  EXPECT_EQ(message.frames[0].code, "loss.backward()");
}

TEST(Surroundings, ProgressBarsWithCarriageReturns) {
  expect_new(only(" 10%|#   | 1/10 [00:01<?, ?it/s]\r 20%|##  | 2/10 [00:02<?, ?it/s]\r" + kNew));
}

TEST(Surroundings, FramesOfTheLastTraceback) {
  const TextMessage message = only(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in old\n    old()\nValueError: no\n"
      "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    main()\n"
      "    ^^^^^^\n  File \"train.py\", line 5, in main\n    loss.backward()\nRuntimeError: CUDA error: out of "
      "memory\n");
  ASSERT_EQ(message.frames.size(), 2U);
  EXPECT_EQ(message.frames[1].function, "main");
  EXPECT_EQ(message.frames[1].code, "loss.backward()");
  EXPECT_EQ(message.frames[1].line, 5);
}

TEST(Surroundings, FramesOfNotebooks) {
  const TextMessage message = only(
      "Cell In[3], line 2\n----> 2 loss.backward()\n\nFile /opt/torch/_tensor.py:5, in Tensor.backward(self)\n"
      "      4 def backward(self):\n----> 5     run(self)\n\nOutOfMemoryError: " +
      kNew);
  ASSERT_FALSE(message.frames.empty());
  EXPECT_EQ(message.frames.back().code, "run(self)");
}

TEST(Surroundings, MentionsInCodeAreNoMessages) {
  for (std::string_view text : {"    except torch.cuda.OutOfMemoryError:", "# handle MemoryError here",
                                "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
                                "\"OOMKilled\": false", "the worker was killed, retrying", "exit code 0"}) {
    EXPECT_TRUE(read_text(text, "test").messages.empty()) << text;
  }
}

TEST(Surroundings, LineNumbersBeyondOneChunk) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "a line without any meaning for anybody at all\n";
  text += "RuntimeError: CUDA error: out of memory\n";
  EXPECT_EQ(only(text).line, 200001);
}

TEST(Surroundings, EndlessRepetitionIsCountedAndTheEndIsRead) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "RuntimeError: CUDA error: out of memory\n";
  text += kNew;
  const TextEvidence evidence = read_text(text, "test");
  EXPECT_EQ(evidence.messages.back().id, "cuda.oom");
  EXPECT_FALSE(evidence.caveats.empty());
}

TEST(ShortLines, HideNoMessageThatABreakCuts) {
  for (const char* line : {"a\n", "a\r\n", "\r\n", "\n", "ab\n", " \n"}) {
    for (size_t count = 0; count < 24; ++count) {
      std::string text;
      for (size_t i = 0; i < count; ++i) text += line;
      text += "CUDA out of mem\nory. Tri\ned to allocate 2.00 GiB\n";
      for (size_t i = 0; i < count; ++i) text += line;
      const TextEvidence read = read_text(text, "short.log");
      ASSERT_EQ(read.messages.size(), 1U) << line << count;
      EXPECT_EQ(read.messages.front().line, static_cast<int64_t>(count) + 1);
    }
  }
}

}  // namespace
}  // namespace oomscope
