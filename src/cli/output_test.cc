#include "cli/output.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "cli/terminal_environment.h"

namespace oomscope {
namespace {

std::string written_by(bool json, void (*use)(Output&)) {
  std::FILE* file = std::tmpfile();
  Progress progress(nullptr);
  Output output(file, json, TerminalOptions{}, &progress);
  use(output);
  EXPECT_TRUE(output.finish().has_value());
  std::string text(4096, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

void two_sentences(Output& output) {
  output.add_sentence("one");
  output.add_sentence("two");
  output.payload()["schema"] = "oomscope.test/1";
}

TEST(Output, ShowsSectionsOrThePayload) {
  EXPECT_EQ(written_by(false, two_sentences), "one\n\ntwo\n");
  EXPECT_EQ(written_by(true, two_sentences), "{\n  \"schema\": \"oomscope.test/1\"\n}\n");
}

TEST(Output, FullDiskIsAnError) {
  std::FILE* full = std::fopen("/dev/full", "w");
  if (full == nullptr) GTEST_SKIP() << "no /dev/full here";
  Progress progress(nullptr);
  Output output(full, false, TerminalOptions{}, &progress);
  output.add_sentence("lost");
  errno = ENOENT;  // of whatever is done before the end
  const Error error = output.finish().error();
  EXPECT_EQ(error.code, "output-not-written");
  EXPECT_EQ(error.what, "system.no-space");
  EXPECT_NE(error.hint, "");
  std::fclose(full);
}

TEST(TerminalOptionsOf, FollowsTheEnvironment) {
  EXPECT_EQ(terminal_options({}).width_columns, 80);
  EXPECT_FALSE(terminal_options({}).colour);
  EXPECT_FALSE(terminal_options({}).unicode);
  TerminalFacts facts{.is_terminal = true,
                      .ioctl_columns = 132,
                      .columns = {},
                      .no_color = {},
                      .term = "xterm",
                      .lc_all = {},
                      .lc_ctype = {},
                      .lang = "de_DE.utf8"};
  EXPECT_EQ(terminal_options(facts).width_columns, 132);
  EXPECT_TRUE(terminal_options(facts).colour);
  EXPECT_TRUE(terminal_options(facts).unicode);
  facts.columns = "60";
  facts.no_color = "1";
  facts.lc_all = "C";
  EXPECT_EQ(terminal_options(facts).width_columns, 60);
  EXPECT_FALSE(terminal_options(facts).colour);
  EXPECT_FALSE(terminal_options(facts).unicode);
  facts.columns = "junk";
  EXPECT_EQ(terminal_options(facts).width_columns, 132);
}

}  // namespace
}  // namespace oomscope
