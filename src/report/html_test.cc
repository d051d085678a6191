#include "report/html.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

TEST(Html, TextOfTheEvidenceStaysText) {
  EXPECT_EQ(html_text("<script>alert(\"1\")</script> & 'x'"),
            "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;");
}

TEST(Html, ControlCharactersAreShownAndLinesKept) { EXPECT_EQ(html_text("a\x1b[1m\nb"), "a\\x1b[1m\nb"); }

TEST(Html, TableHasItsTotalAndItsColumnsSides) {
  const Table table{.title = "T<",
                    .columns = {{.header = "bytes", .align = Align::right}, {.header = "what"}},
                    .rows = {{.cells = {"1", "a<b"}}},
                    .total = Row{.cells = {"1", "all"}},
                    .note = "n"};
  const std::string html = html_section({.body = table});
  EXPECT_NE(html.find("<h3>T&lt;</h3>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"number\">1</td><td>a&lt;b</td>"), std::string::npos);
  EXPECT_NE(html.find("<tfoot><tr>"), std::string::npos);
}

TEST(Html, EmptySectionsLeaveNothing) {
  EXPECT_EQ(html_section({.body = List{.title = "empty", .entries = {}}}), "");
  EXPECT_EQ(html_section({.body = Lines{.title = "empty", .lines = {}}}), "");
}

}  // namespace
}  // namespace oomscope
