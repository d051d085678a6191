#include "report/document.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

Table balance() {
  return Table{
      .title = "Where the memory was",
      .columns = {{.header = "what"},
                  {.header = "size", .align = Align::right},
                  {.header = "source", .may_shrink = true, .keep = Keep::tail},
                  {.header = "note", .may_drop = true}},
      .rows = {{.cells = {"allocated", "5,820 MiB", "recording"}}, {.cells = {"[outside]", "12 MiB", "--gpu", "x"}}},
      .total = Row{.cells = {"total", "5,832 MiB"}},
      .note = ""};
}

TEST(RenderTable, AlignsAndAddsTheTotalLine) {
  EXPECT_EQ(render_section({.body = balance()}, TerminalOptions{}),
            "Where the memory was\n"
            "  what            size  source     note\n"
            "  allocated  5,820 MiB  recording\n"
            "  [outside]     12 MiB  --gpu      x\n"
            "  -------------------------------------\n"
            "  total      5,832 MiB\n");
}

TEST(RenderTable, ShrinksThenDropsColumnsToFit) {
  Table table = balance();
  table.rows[0].cells[2] = "/a/long/way/to/train.py";
  EXPECT_EQ(render_section({.body = table}, TerminalOptions{.width_columns = 40, .colour = false, .unicode = false}),
            "Where the memory was\n"
            "  what            size  source      note\n"
            "  allocated  5,820 MiB  ..train.py\n"
            "  [outside]     12 MiB  --gpu       x\n"
            "  --------------------------------------\n"
            "  total      5,832 MiB\n");
  EXPECT_EQ(render_section({.body = table}, TerminalOptions{.width_columns = 34, .colour = false, .unicode = false}),
            "Where the memory was\n"
            "  what            size  source\n"
            "  allocated  5,820 MiB  ..train.py\n"
            "  [outside]     12 MiB  --gpu\n"
            "  --------------------------------\n"
            "  total      5,832 MiB\n");
}

TEST(RenderTable, WrapsWhatMayBeWrapped) {
  const Table table{.title = "",
                    .columns = {{.header = ""}, {.header = "", .may_wrap = true}},
                    .rows = {{.cells = {"outside", "unknown: give the card, --gpu SIZE"}}},
                    .total = std::nullopt,
                    .note = ""};
  EXPECT_EQ(render_section({.body = table}, TerminalOptions{.width_columns = 30, .colour = false, .unicode = false}),
            "  outside  unknown: give the\n"
            "           card, --gpu SIZE\n");
}

TEST(RenderDocument, SeparatesSectionsUnlessJoined) {
  Document document;
  document.sections.push_back({.body = Sentence{.text = "It ran out."}});
  document.sections.push_back({.body = Sentence{.text = "By 3 MiB."}, .joined = true});
  document.sections.push_back({.body = List{}});
  document.sections.push_back({.body = Lines{.title = "Proof", .lines = {"10 events, 0 mismatches"}}});
  EXPECT_EQ(render_terminal(document, TerminalOptions{}),
            "It ran out.\nBy 3 MiB.\n\nProof\n  10 events, 0 mismatches\n");
}

TEST(RenderSentence, WrapsAndIndents) {
  EXPECT_EQ(render_section({.body = Sentence{.text = "one two three four", .indent_columns = 2}},
                           TerminalOptions{.width_columns = 12, .colour = false, .unicode = false}),
            "  one two\n  three four\n");
}

TEST(RenderList, HangsItsLines) {
  const List list{.title = "How far to trust this", .entries = {"the file is cut and so is this line"}};
  EXPECT_EQ(render_section({.body = list}, TerminalOptions{.width_columns = 24, .colour = false, .unicode = false}),
            "How far to trust this\n  - the file is cut and\n    so is this line\n");
}

TEST(CaveatList, SaysEachInTheLanguage) {
  const Caveats caveats = {{.code = "segment-sum-wrong", .values = {{"count", "1"}}}};
  EXPECT_EQ(caveat_list(caveats).entries.front(), "the blocks of 1 segment do not sum to the segment's size");
  EXPECT_EQ(caveat_list(caveats, Language::chinese).entries.front(), "有 1 个段，其中各块之和不等于段的大小");
}

TEST(RenderCurve, DrawsPeaksBetweenItsLabels) {
  const Curve curve{.title = "", .values = {0, 4, 8}, .left_label = "start", .right_label = "end"};
  EXPECT_EQ(render_section({.body = curve}, TerminalOptions{}), "  _-#\n  start end\n");
}

TEST(RenderText, OutsideTextCannotDriveTheTerminal) {
  const Lines lines{.title = "", .lines = {"evil\x1b[2J"}};
  EXPECT_EQ(render_section({.body = lines}, TerminalOptions{}), "  evil\\x1b[2J\n");
}

TEST(RenderJson, KeepsOrderAndReplacesBadBytes) {
  Document document;
  document.payload["schema"] = "oomscope.show/1";
  document.payload["at"] = "peak\xff";
  document.payload["caveats"] = caveats_json({{.code = "cut", .values = {}, .source = CaveatSource::model}});
  EXPECT_EQ(render_json(document),
            "{\n  \"schema\": \"oomscope.show/1\",\n  \"at\": \"peak\uFFFD\",\n  \"caveats\": [\n    {\n"
            "      \"code\": \"cut\",\n      \"text\": \"caveat.cut\",\n      \"source\": \"model\"\n    }\n  ]\n}\n");
}

}  // namespace
}  // namespace oomscope
