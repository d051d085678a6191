// What is taken off a log's lines, and where the rest came from.
#include "evidence/text/squeeze.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

std::string first_line(std::string_view raw) { return clean_lines(raw).front().text; }

TEST(CleanLines, LoseColoursAndPrefixesOfLoggers) {
  EXPECT_EQ(first_line("\x1b[31m2024-05-01 10:00:00,123 ERROR: out of memory\x1b[0m"), "out of memory");
  EXPECT_EQ(first_line("> > out of memory"), "out of memory");
}

TEST(CleanLines, KeepTheRankOfTheirPrefix) {
  const std::vector<CleanLine> lines = clean_lines("[rank3]: out of memory\nno prefix");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "out of memory");
  EXPECT_EQ(lines[0].rank, 3);
  EXPECT_FALSE(lines[1].rank);
}

TEST(CleanLines, SplitAtEscapedBreaksWhereThereAreSeveral) {
  EXPECT_EQ(clean_lines(R"(a\nb\nc)").size(), 3u);
  EXPECT_EQ(clean_lines(R"(C:\new)").size(), 1u) << "one such pair may be a path";
}

TEST(PlainLines, KeepTheirPrefixes) { EXPECT_EQ(plain_lines("ERROR: full").front().text, "ERROR: full"); }

TEST(CleanText, IsTheSameHoweverATerminalWrapsIt) {
  EXPECT_EQ(clean_text("Out \nof memory").squeezed, clean_text("Out of me\nmory").squeezed);
}

TEST(CleanText, KnowsWhereEachCharacterStood) {
  const std::string raw = "ERROR: a b\nc";
  const CleanText text = clean_text(raw);
  ASSERT_EQ(text.squeezed, "abc");
  ASSERT_EQ(text.raw_offsets.size(), text.squeezed.size());
  for (size_t i = 0; i < text.squeezed.size(); ++i) EXPECT_EQ(raw[text.raw_offsets[i]], text.squeezed[i]);
  EXPECT_EQ(text.squeezed_at(raw.find('c')), 2u);
}

std::string squeezed(std::string_view text) { return clean_text(text).squeezed; }

TEST(Prefixes, OfContainersPodsAndJournalsGo) {
  const std::string_view message = "CUDAoutofmemory.Triedtoallocate2.00GiB";
  EXPECT_EQ(squeezed("2024-05-11T14:10:52.250000000+02:00 stderr P CUDA out of mem\n"
                     "2024-05-11T14:10:52.250000000+02:00 stderr F ory. Tried to allocate 2.00 GiB\n"),
            message);
  EXPECT_EQ(squeezed("May 11 14:10:52 node-7 python3[412]: CUDA out of memory. Tried\n"
                     "May 11 14:10:52 node-7 python3[412]: to allocate 2.00 GiB\n"),
            message);
  EXPECT_EQ(squeezed("trainer-1  | CUDA out of memory.\ntrainer-1  | Tried to allocate 2.00 GiB\n"), message);
  EXPECT_EQ(squeezed("[pod/train-0/main] CUDA out of memory. Tried to\n[pod/train-0/main] allocate 2.00 GiB\n"),
            message);
  // What the system's own programs are called is part of what they say.
  EXPECT_EQ(clean_lines("May 11 14:10:52 node systemd-oomd[9]: Killed x").front().text,
            "May 11 14:10:52 node systemd-oomd[9]: Killed x");
}

TEST(Prefixes, ThatNeighboursShareGo) {
  const std::string_view message = "CUDAoutofmemory.Triedtoallocate2.00GiB";
  for (const std::string prefix : {"gpu07: ", "node-3: ", "[3]<stderr>: ", "[rank 3] ", "[trainer-0] ",
                                   "2024-05-01 10:00:00 - ERROR - ", "2024-05-01 10:00:00,123 - my.train - ERROR - "})
    EXPECT_EQ(squeezed(prefix + "CUDA out of mem\n" + prefix + "ory. Tried to allocate 2.00 GiB\n"), message) << prefix;
  EXPECT_EQ(clean_lines("gpu07: out of memory\nno prefix").front().text, "gpu07: out of memory") << "it stands alone";
  EXPECT_EQ(clean_lines("[epoch 3] loss 1\n[epoch 3] loss 2").front().text, "[epoch 3] loss 1") << "a counter";
}

TEST(Folding, OfEntitiesAndWidePunctuation) {
  EXPECT_EQ(squeezed("CUDA&nbsp;out of memory\u3002Tried to allocate 2.00 GiB\uFF08GPU 0\uFF1B"),
            "CUDAoutofmemory.Triedtoallocate2.00GiB(GPU0;");
  EXPECT_EQ(squeezed("file &lt;/torch_1&gt; &amp; \u201Cx\u201D &#39;y&#39;"), "file</torch_1>&\"x\"'y'");
}

}  // namespace
}  // namespace oomscope
