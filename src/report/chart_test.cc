#include "report/chart.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

TEST(Axis, StepsAreRoundInTheUnitThatIsShown) {
  EXPECT_EQ(axis_step(6 * kGiB, 5), 2 * kGiB);
  EXPECT_EQ(axis_text(2 * kGiB, 6 * kGiB), "2 GiB");
  EXPECT_EQ(axis_step(kGiB + 500 * kMiB, 5), kGiB / 2);
  EXPECT_EQ(axis_text(kGiB / 2, 2 * kGiB), "0.5 GiB");
  EXPECT_EQ(axis_step(700 * kMiB, 5), 200 * kMiB);
  EXPECT_EQ(axis_text(0, kGiB), "0");
}

StackedTimeline two_layers() {
  StackedTimeline timeline;
  timeline.title = "a <b>";
  timeline.layers = {{.name = "x", .colour = "#4477aa", .bytes = {1, 2, 1}},
                     {.name = "y", .colour = "#ee7733", .bytes = {0, 1, 0}}};
  timeline.reserved = {4, 4, 4};
  return timeline;
}

TEST(Drawing, SvgEscapesAndNamesWhatItShows) {
  const std::string svg = svg_of(draw_timeline(two_layers(), {.width = 300, .height = 200}), false);
  EXPECT_NE(svg.find("aria-label=\"a &lt;b&gt;\""), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
}

TEST(Drawing, PngIsTheSameEachTimeAndTwicePixels) {
  const Drawing drawing = draw_timeline(two_layers(), {.width = 300, .height = 200});
  const std::string png = png_of(drawing);
  ASSERT_EQ(png.substr(1, 3), "PNG");
  EXPECT_EQ(static_cast<unsigned char>(png[18]) * 256 + static_cast<unsigned char>(png[19]), 600);
  EXPECT_EQ(png, png_of(drawing));
}

}  // namespace
}  // namespace oomscope
