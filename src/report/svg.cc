#include <fmt/format.h>

#include "report/drawing.h"
#include "report/html.h"
#include "report/terminal.h"

namespace oomscope {
namespace {

class SvgWriter {
 public:
  explicit SvgWriter(bool inline_in_page) : inline_(inline_in_page) {}

  [[nodiscard]] std::string colour(const std::string& name) const {
    if (name == kInk) return inline_ ? "currentColor" : "#1c2127";
    if (name == kFaint) return inline_ ? "var(--rule)" : "#d4d8dd";
    if (name == kPaper) return inline_ ? "var(--ground)" : "#ffffff";
    return name;
  }

  static std::string points(const std::vector<Point>& list) {
    std::string text;
    for (const Point& point : list) text += fmt::format("{}{:.4g},{:.4g}", text.empty() ? "" : " ", point.x, point.y);
    return text;
  }

  std::string operator()(const Polygon& shape) const {
    const std::string opacity = shape.opacity < 1 ? fmt::format(" fill-opacity=\"{}\"", shape.opacity) : "";
    return fmt::format("<polygon points=\"{}\" fill=\"{}\"{}/>\n", points(shape.points), colour(shape.colour), opacity);
  }
  std::string operator()(const Path& path) const {
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                       points(path.points), colour(path.colour), path.width,
                       path.dashed ? " stroke-dasharray=\"5 4\"" : "");
  }
  std::string operator()(const Label& label) const {
    const char* anchor = label.anchor == Anchor::end ? "end" : label.anchor == Anchor::middle ? "middle" : "start";
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       label.at.x, label.at.y, label.size, colour(label.colour), anchor, html_text(label.text));
  }

 private:
  bool inline_;
};

}  // namespace

double text_width(const std::string& text, double size) { return 0.56 * size * display_width(text); }

std::string svg_of(const Drawing& drawing, bool inline_in_page) {
  const SvgWriter writer(inline_in_page);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\"{2} role=\"img\" aria-label=\"{3}\" "
      "font-family=\"Roboto, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', Arial, sans-serif\">\n<title>{3}</title>\n",
      drawing.width, drawing.height,
      inline_in_page ? "" : fmt::format(" width=\"{}\" height=\"{}\"", drawing.width, drawing.height),
      html_text(drawing.title));
  if (!inline_in_page)
    svg += fmt::format("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n", writer.colour(kPaper));
  for (const auto& shape : drawing.shapes) svg += std::visit(writer, shape);
  return svg + "</svg>\n";
}

}  // namespace oomscope
