#include "report/step_picture.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

constexpr double kPanelWidth = 420;
constexpr double kPanelHeight = 260;
constexpr double kMargin = 40;
constexpr double kGap = 24;
constexpr double kLegendRow = 18;
constexpr size_t kLegendColumns = 4;
// One a category, in their order; told apart with any colour vision.
constexpr std::array<const char*, kCategories> kColours = {"#332288", "#88ccee", "#44aa99", "#117733",
                                                           "#999933", "#ddcc77", "#cc6677", "#882255",
                                                           "#aa4499", "#bbbbbb", "#dddddd"};

int64_t total(const CategoryBytes& column) {
  int64_t sum = 0;
  for (int64_t bytes : column) sum += bytes;
  return sum;
}

int64_t highest(const StepSeries& series) {
  int64_t most = 0;
  for (const CategoryBytes& column : series.columns) most = std::max(most, total(column));
  return most;
}

class Drawing {
 public:
  Drawing(const StepPicture& picture, Language language) : picture_(picture), language_(language) {
    top_ = std::max<int64_t>(
        {highest(picture.before), picture.after ? highest(*picture.after) : 0, picture.capacity_bytes.value_or(0), 1});
  }

  std::string run() {
    const size_t panels = picture_.after ? 2 : 1;
    const double width =
        2 * kMargin + static_cast<double>(panels) * kPanelWidth + static_cast<double>(panels - 1) * kGap;
    const size_t rows = (kCategories + kLegendColumns - 1) / kLegendColumns;
    const double height = 2 * kMargin + kPanelHeight + static_cast<double>(rows) * kLegendRow;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    panel(picture_.before, kMargin, "fit.picture.before");
    if (picture_.after) panel(*picture_.after, kMargin + kPanelWidth + kGap, "fit.picture.after");
    legend((width - 2 * kMargin) / kLegendColumns);
    return text_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double y_of(int64_t bytes) const {
    return kMargin + kPanelHeight * (1 - static_cast<double>(bytes) / static_cast<double>(top_));
  }

  void label(double x, double y, const std::string& words) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, y, words);
  }

  // From the bottom up: each category fills what lies between the sum below it and the sum with it.
  void panel(const StepSeries& series, double x, const char* title) {
    label(x, kMargin - 12, fmt::format("{}: {}", say(title, language_), format_mib(highest(series))));
    std::vector<int64_t> below(series.columns.size(), 0);
    for (size_t category = 0; category < kCategories; ++category) {
      std::string upper;
      std::string lower;
      int64_t area = 0;
      for (size_t i = 0; i < series.columns.size(); ++i) {
        const double at = x + kPanelWidth * (static_cast<double>(i) + 0.5) / static_cast<double>(series.columns.size());
        lower = fmt::format("{:.1f},{:.1f} ", at, y_of(below[i])) + lower;
        below[i] += series.columns[i][category];
        area += series.columns[i][category];
        upper += fmt::format("{:.1f},{:.1f} ", at, y_of(below[i]));
      }
      if (area == 0) continue;
      text_ += fmt::format("<polygon fill=\"{}\" points=\"{}{}\"/>\n", kColours[category], upper, lower);
    }
    text_ += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\" fill=\"none\" stroke=\"black\"/>\n", x, kMargin,
                         kMargin + kPanelHeight, x + kPanelWidth);
    if (!picture_.capacity_bytes) return;
    const double y = y_of(*picture_.capacity_bytes);
    text_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#cc0000\" stroke-dasharray=\"6 3\"/>\n", x, y,
                         x + kPanelWidth);
    label(x + 4, y - 4,
          fmt::format("{} {}", say("fit.picture.capacity", language_), format_mib(*picture_.capacity_bytes)));
  }

  void legend(double column_width) {
    for (size_t i = 0; i < kCategories; ++i) {
      const double x = kMargin + column_width * static_cast<double>(i % kLegendColumns);
      const double y = kMargin + kPanelHeight + 12 + kLegendRow * static_cast<double>(i / kLegendColumns);
      text_ +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x, y, kColours[i]);
      label(x + 16, y + 10, say(fmt::format("fit.category.{}", name_of(static_cast<Category>(i))), language_));
    }
  }

  const StepPicture& picture_;
  Language language_;
  int64_t top_ = 1;
  std::string text_;
};

}  // namespace

std::string draw(const StepPicture& picture, Language language) { return Drawing(picture, language).run(); }

}  // namespace oomscope
