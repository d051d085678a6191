// Drawing: shapes on a canvas, for the writers of SVG (svg.h) and PNG (png.h). Units are pixels, from the top left.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace oomscope {

struct Point {
  double x = 0;
  double y = 0;
};

// "#4477aa", or a role that the writer fills in: the colour of text, of rules, of the ground.
inline constexpr const char* kInk = "ink";
inline constexpr const char* kFaint = "faint";
inline constexpr const char* kPaper = "paper";

struct Polygon {
  std::vector<Point> points;
  std::string colour;
  double opacity = 1;
};

struct Path {
  std::vector<Point> points;
  std::string colour;
  double width = 1;
  bool dashed = false;
};

enum class Anchor { start, middle, end };

struct Label {
  Point at;  // on the baseline
  std::string text;
  double size = 12;
  std::string colour = kInk;
  Anchor anchor = Anchor::start;
};

struct Drawing {
  double width = 0;
  double height = 0;
  std::string title;  // for those who cannot see it
  std::vector<std::variant<Polygon, Path, Label>> shapes;

  void rectangle(double x, double y, double w, double h, std::string colour, double opacity = 1) {
    shapes.emplace_back(Polygon{
        .points = {{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, .colour = std::move(colour), .opacity = opacity});
  }
};

// How wide `text` is at a size, roughly: layouts leave room for it.
[[nodiscard]] double text_width(const std::string& text, double size);

// `inline_in_page`: ink is the page's own colour and nothing is painted below. Otherwise on white.
[[nodiscard]] std::string svg_of(const Drawing& drawing, bool inline_in_page);

// At two pixels a unit. Text is drawn with the embedded font, which has Latin, Greek and Cyrillic letters.
[[nodiscard]] std::string png_of(const Drawing& drawing);

}  // namespace oomscope
