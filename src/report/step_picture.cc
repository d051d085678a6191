#include "report/step_picture.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/chart.h"
#include "report/view_payload.h"

namespace oomscope {
namespace {

constexpr ChartSize kPanel = {.width = 600, .height = 380, .columns = kStepColumns};

int64_t highest(const StepSeries& series) {
  int64_t most = 0;
  for (const CategoryBytes& column : series.columns) {
    int64_t sum = 0;
    for (int64_t bytes : column) sum += bytes;
    most = std::max(most, sum);
  }
  return most;
}

Drawing panel(const StepSeries& series, const std::string& title, const StepPicture& picture, int64_t room,
              Language language) {
  StackedTimeline timeline;
  timeline.title = fmt::format("{}: {}", title, format_mib(highest(series)));
  timeline.left_label = say("fit.picture.step-begins", language);
  timeline.right_label = say("fit.picture.step-ends", language);
  timeline.room_bytes = room;
  for (size_t category = 0; category < kCategories; ++category) {
    StackedTimeline::Layer layer{
        .name = say(fmt::format("category.{}", name_of(static_cast<Category>(category))), language),
        .colour = std::string(category_colour(category)),
        .bytes = {}};
    for (const CategoryBytes& column : series.columns) layer.bytes.push_back(column[category]);
    timeline.layers.push_back(std::move(layer));
  }
  // Its number stands in the title: beside the line it would lie on the bytes.
  if (picture.capacity_bytes) {
    timeline.limits.push_back({.bytes = *picture.capacity_bytes, .text = ""});
    timeline.title +=
        fmt::format("; {} {}", say("fit.picture.capacity", language), format_mib(*picture.capacity_bytes));
  }
  return draw_timeline(timeline, kPanel);
}

}  // namespace

Drawing draw(const StepPicture& picture, Language language) {
  const int64_t room = std::max(highest(picture.before), picture.after ? highest(*picture.after) : 0);
  Drawing drawing{.width = kPanel.width, .height = 0, .title = say("fit.picture.title", language), .shapes = {}};
  append_below(panel(picture.before, say("fit.picture.before", language), picture, room, language), drawing);
  if (!picture.after) return drawing;
  const std::string title = picture.measure.empty() ? say("fit.picture.after", language) : picture.measure;
  const Drawing after = panel(*picture.after, title, picture, room, language);
  append(after, kPanel.width, 0, drawing);
  drawing.width += kPanel.width;
  drawing.height = std::max(drawing.height, after.height);
  return drawing;
}

}  // namespace oomscope
