#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "base/bytes_text.h"
#include "cli/commands.h"
#include "cli/error_text.h"

namespace oomscope {
namespace {

Result<int> do_nothing(const Options&, Output&) { return 0; }

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> list = {why_command(), show_command(), replay_command(), verify_command()};
    for (Command& command : list) command.run = do_nothing;
    return list;
  }();
  return kCommands;
}

bool only_train_exists(const std::string& path) { return path == "train"; }

Result<Invocation> parse(const std::vector<std::string>& arguments, bool piped = false) {
  return parse_arguments(arguments, commands(),
                         {.version = "1.2.3", .has_piped_input = piped, .file_exists = only_train_exists});
}

std::string command_of(const std::vector<std::string>& arguments, bool piped = false) {
  const Result<Invocation> invocation = parse(arguments, piped);
  if (!invocation) return "error: " + say(invocation.error(), Language::english).what;
  return invocation->command == nullptr ? "text" : std::string(invocation->command->name);
}

std::string message_of(const std::vector<std::string>& arguments) {
  const Result<Invocation> invocation = parse(arguments);
  return invocation ? "no error" : error_text(invocation.error(), Language::english, TerminalOptions{});
}

TEST(Arguments, AFileAloneIsWhy) {
  EXPECT_EQ(command_of({"oom.pickle"}), "why");
  EXPECT_EQ(command_of({"runs/42"}), "why");
  EXPECT_EQ(command_of({"train"}), "why");
  EXPECT_EQ(command_of({"-"}), "why");
  EXPECT_EQ(command_of({"--json", "oom.pickle"}), "why");
  EXPECT_EQ(parse({"--json", "oom.pickle"})->options.global.json, true);
  EXPECT_EQ(parse({"a.pickle", "b.pickle"})->options.why.evidence, (std::vector<std::string>{"a.pickle", "b.pickle"}));
}

TEST(Arguments, PipedInputIsWhy) {
  EXPECT_EQ(command_of({}, true), "why");
  EXPECT_EQ(parse({}, true)->options.why.evidence, (std::vector<std::string>{"-"}));
  EXPECT_EQ(command_of({"--json"}, true), "why");
  EXPECT_EQ(parse({"why", "--gpu", "24GiB"}, true)->options.why.evidence, (std::vector<std::string>{"-"}));
  EXPECT_EQ(message_of({"why"}), "oomscope: why: no evidence given\n  oomscope why oom.pickle\n");
}

TEST(Arguments, NothingAtAllPrintsWhatToType) {
  EXPECT_EQ(command_of({}), "text");
  const std::string text = parse({})->text;
  EXPECT_NE(text.find("oomscope why oom.pickle"), std::string::npos);
  EXPECT_NE(text.find("Experts: show, replay, verify."), std::string::npos);
}

TEST(Arguments, OverviewShowsOnlyCommandsThatExist) {
  EXPECT_EQ(overview({}).find("why oom.pickle"), std::string::npos);
  EXPECT_EQ(overview({}).find("Experts"), std::string::npos);
}

TEST(Arguments, VersionAndHelpAreTexts) {
  EXPECT_EQ(parse({"--version"})->text, "oomscope 1.2.3\n");
  EXPECT_EQ(parse({"--version", "--json"})->text,
            "{\n  \"schema\": \"oomscope.version/1\",\n  \"version\": \"1.2.3\"\n}\n");
  EXPECT_NE(parse({"--help"})->text.find("  replay    what would have happened"), std::string::npos);
  const std::string help = parse({"replay", "--help"})->text;
  EXPECT_NE(help.find("--smallest-cap"), std::string::npos);
  EXPECT_NE(help.find("  oomscope replay oom.pickle --sweep"), std::string::npos);
  EXPECT_EQ(parse({"help", "replay"})->text, help);
}

TEST(Arguments, ConfKeepsEmptyAndAbsentApart) {
  EXPECT_FALSE(parse({"replay", "a.pickle"})->options.replay.conf.has_value());
  EXPECT_EQ(parse({"replay", "a.pickle", "--conf", ""})->options.replay.conf, "");
  EXPECT_EQ(parse({"replay", "a.pickle", "--conf="})->options.replay.conf, "");
  EXPECT_EQ(parse({"replay", "--conf", "", "a.pickle"})->options.replay.snapshot.path, "a.pickle");
  const std::string list = "roundup_power2_divisions:[256:1,>:8],max_split_size_mb:64";
  EXPECT_EQ(parse({"replay", "a.pickle", "--conf", list})->options.replay.conf, list);
  EXPECT_EQ(parse({"replay", "a.pickle", "--conf=[x]"})->options.replay.conf, "[x]");
}

TEST(Arguments, SizesAndCardsBecomeValues) {
  const Result<Invocation> replay =
      parse({"replay", "a.pickle", "--cap", "20GiB", "--gpu", "rtx 4090", "--device", "1"});
  ASSERT_TRUE(replay.has_value());
  EXPECT_EQ(replay->options.replay.cap_bytes, 20 * kGiB);
  EXPECT_EQ(replay->options.replay.gpu->name, "RTX 4090");
  EXPECT_EQ(replay->options.replay.snapshot.device, 1);
}

TEST(Arguments, LanguageIsTheOptionsElseTheLocales) {
  unsetenv("LC_ALL");
  unsetenv("LC_MESSAGES");
  setenv("LANG", "zh_CN.UTF-8", 1);
  EXPECT_EQ(parse({"why", "x"})->options.why.language, Language::chinese);
  EXPECT_EQ(parse({"why", "x", "--lang", "en"})->options.why.language, Language::english);
  setenv("LC_ALL", "zh_CN.GB18030", 1);
  EXPECT_EQ(parse({"why", "x"})->options.why.language, Language::english);
  setenv("LC_ALL", "fr_FR.UTF-8", 1);
  EXPECT_EQ(parse({"why", "x"})->options.why.language, Language::english);
  EXPECT_NE(message_of({"why", "x", "--lang", "fr"}).find("none of en, zh"), std::string::npos);
}

TEST(Arguments, ExplainTakesOneIdOrNone) {
  EXPECT_EQ(parse({"why", "--explain", "graph-kept"})->options.why.explain_id, "graph-kept");
  EXPECT_EQ(parse({"why", "--explain"}, /*piped=*/true)->options.why.explain_id, "");
  EXPECT_NE(message_of({"why", "--explain", "a", "b"}).find("takes one ID"), std::string::npos);
}

TEST(Arguments, AWrongValueNamesARightOne) {
  for (const auto& [option, value, hint] : std::vector<std::array<std::string, 3>>{{"--at", "xx", "--at peak"},
                                                                                   {"--by", "zz", "--by stack"},
                                                                                   {"--lang", "xx", "--lang en"},
                                                                                   {"--top", "abc", "--top 15"}}) {
    const Result<Invocation> invocation = parse({"show", "a.pickle", option, value});
    ASSERT_FALSE(invocation) << option;
    EXPECT_EQ(invocation.error().hint, hint);
  }
  EXPECT_EQ(parse({"show", "a.pickle", "--at", "xx"}).error().what, "error.none-of-or-event");
}

TEST(Arguments, ShowTakesAMomentOrAnEvent) {
  EXPECT_EQ(parse({"show", "a.pickle"})->options.show.at, Moment::peak);
  EXPECT_EQ(parse({"show", "a.pickle", "--at", "oom"})->options.show.at, Moment::oom);
  EXPECT_EQ(parse({"show", "a.pickle", "--at", "1234"})->options.show.event, 1234);
  EXPECT_EQ(parse({"show", "a.pickle", "--by", "segment"})->options.show.by, GroupBy::segment);
}

TEST(Arguments, SlipsNameTheNextStep) {
  EXPECT_EQ(message_of({"reply", "a.pickle"}),
            "oomscope: arguments: no command and no file is called \"reply\"\n  did you mean: oomscope replay\n");
  EXPECT_EQ(message_of({"replay", "a.pickle", "--swep"}),
            "oomscope: replay: no option is called --swep\n"
            "  did you mean --sweep? All options: oomscope replay --help\n");
  EXPECT_EQ(
      message_of({"show", "a.pickle", "--at", "peek"}),
      "oomscope: --at: \"peek\" is none of peak, end, oom, nor the number of an event\n  did you mean --at peak?\n");
  EXPECT_EQ(message_of({"replay", "a.pickle", "b.pickle"}),
            "oomscope: replay: takes SNAPSHOT; \"b.pickle\" is one too many\n  oomscope replay --help\n");
  EXPECT_EQ(message_of({"replay", "a.pickle", "--cap", "20XB"}),
            "oomscope: --cap \"20XB\": unknown unit \"XB\"; the units are B, KiB, MiB, GiB and TiB\n"
            "  write it like 24GiB, 512M, 1.5GiB or 1048576 (bytes)\n");
  EXPECT_EQ(message_of({"replay", "a.pickle", "--device", "-1"}),
            "oomscope: --device: \"-1\" is no device number\n  devices count from 0: --device 0\n");
  EXPECT_EQ(message_of({"why", "a.pickle", "--gpu", "A100"}),
            "oomscope: --gpu: \"A100\" is sold with different memory: A100 40GB / A100 80GB\n"
            "  write --gpu \"A100 40GB\", or a size: --gpu 24GiB\n");
  EXPECT_EQ(message_of({"replay"}), "oomscope: replay: SNAPSHOT is missing\n  oomscope replay --help\n");
  EXPECT_EQ(message_of({"replay", "a.pickle", "--cap", "100"}),
            "oomscope: --cap \"100\": no allocator works in less than 2 MiB\n"
            "  is the unit missing? --cap 100M, --cap 24GiB\n");
  EXPECT_EQ(message_of({"replay", "a.pickle", "--cap"}),
            "oomscope: replay: a value is missing: --cap SIZE\n  oomscope replay --help\n");
  EXPECT_EQ(message_of({"--json"}), "oomscope: arguments: no command and no file\n  oomscope --help\n");
}

TEST(Arguments, SweepGoesWithNeitherConfNorSmallestCap) {
  EXPECT_EQ(parse({"replay", "a.pickle", "--sweep", "--conf", ""}).error().code, "bad-usage");
  EXPECT_EQ(parse({"replay", "a.pickle", "--sweep", "--smallest-cap"}).error().code, "bad-usage");
}

TEST(Arguments, NoCommandIsNeededForOptionsOfWhy) { EXPECT_EQ(command_of({"--gpu", "24GiB", "oom.pickle"}), "why"); }

}  // namespace
}  // namespace oomscope
