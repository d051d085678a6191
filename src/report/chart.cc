#include "report/chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/view_payload.h"

namespace oomscope {
namespace {

constexpr double kTextSize = 12;
constexpr double kLeft = 72;  // room for the axis
constexpr double kRight = 16;
constexpr double kTop = 44;
constexpr const char* kFailureColour = "#cc3311";
constexpr size_t kMostBands = 60;  // more would be a grey surface

struct Plot {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  double most = 1;
  [[nodiscard]] double y(int64_t bytes) const { return top + height * (1 - static_cast<double>(bytes) / most); }
  [[nodiscard]] double x(double share) const { return left + width * share; }
};

// The outline of a layer over those below it, as steps.
std::vector<Point> steps_of(const std::vector<int64_t>& heights, const Plot& plot) {
  std::vector<Point> points;
  for (size_t i = 0; i < heights.size(); ++i) {
    const double y = plot.y(heights[i]);
    const double begin = plot.x(static_cast<double>(i) / static_cast<double>(heights.size()));
    const double end = plot.x(static_cast<double>(i + 1) / static_cast<double>(heights.size()));
    if (points.empty() || points.back().y != y) points.push_back({begin, y});
    if (points.size() >= 2 && points.back().y == y && points[points.size() - 2].y == y) points.pop_back();
    points.push_back({end, y});
  }
  return points;
}

int64_t most_of(const StackedTimeline& timeline) {
  int64_t most = std::max<int64_t>(timeline.room_bytes, 1);
  for (int64_t bytes : timeline.reserved) most = std::max(most, bytes);
  for (const StackedTimeline::Limit& limit : timeline.limits) most = std::max(most, limit.bytes);
  for (const StackedTimeline::Mark& mark : timeline.marks) most = std::max(most, mark.bytes);
  return most;
}

void draw_axis(const Plot& plot, int64_t most, Drawing& drawing) {
  const int64_t step = axis_step(most, 5);
  for (int64_t bytes = 0; bytes <= most; bytes += step) {
    const double y = plot.y(bytes);
    drawing.shapes.emplace_back(
        Path{.points = {{plot.left, y}, {plot.left + plot.width, y}}, .colour = kFaint, .width = 1});
    drawing.shapes.emplace_back(
        Label{.at = {plot.left - 8, y + 4}, .text = axis_text(bytes, most), .size = kTextSize, .anchor = Anchor::end});
  }
}

void draw_layers(const StackedTimeline& timeline, const Plot& plot, Drawing& drawing) {
  if (timeline.layers.empty()) return;
  std::vector<int64_t> below(timeline.layers.front().bytes.size(), 0);
  for (const StackedTimeline::Layer& layer : timeline.layers) {
    if (std::all_of(layer.bytes.begin(), layer.bytes.end(), [](int64_t bytes) { return bytes == 0; })) continue;
    std::vector<int64_t> above = below;
    for (size_t i = 0; i < above.size(); ++i) above[i] += layer.bytes[i];
    std::vector<Point> outline = steps_of(above, plot);
    const std::vector<Point> floor = steps_of(below, plot);
    outline.insert(outline.end(), floor.rbegin(), floor.rend());
    drawing.shapes.emplace_back(Polygon{.points = std::move(outline), .colour = layer.colour});
    below = std::move(above);
  }
}

void draw_marks(const StackedTimeline& timeline, const Plot& plot, Drawing& drawing) {
  for (const StackedTimeline::Limit& limit : timeline.limits) {
    const double y = plot.y(limit.bytes);
    drawing.shapes.emplace_back(Path{
        .points = {{plot.left, y}, {plot.left + plot.width, y}}, .colour = kFailureColour, .width = 1, .dashed = true});
    drawing.shapes.emplace_back(Label{.at = {plot.left + 6, y - 5}, .text = limit.text, .size = 11});
  }
  for (const StackedTimeline::Mark& mark : timeline.marks) {
    const double x = plot.x(mark.at);
    const double y = plot.y(mark.bytes);
    const char* colour = mark.is_failure ? kFailureColour : kInk;
    if (mark.is_failure) {
      drawing.shapes.emplace_back(
          Path{.points = {{x, plot.top}, {x, plot.top + plot.height}}, .colour = colour, .width = 1.5});
    } else {
      drawing.shapes.emplace_back(Polygon{.points = {{x, y - 1}, {x - 5, y - 9}, {x + 5, y - 9}}, .colour = colour});
    }
    const bool is_right = mark.at > 0.6;
    drawing.shapes.emplace_back(Label{.at = {x + (is_right ? -9 : 9), mark.is_failure ? plot.top + 12 : y - 4},
                                      .text = mark.text,
                                      .size = kTextSize,
                                      .colour = colour,
                                      .anchor = is_right ? Anchor::end : Anchor::start});
  }
}

// Entries in rows below the plot; returns where the next thing may begin.
double draw_legend(const std::vector<std::pair<std::string, std::string>>& entries, double left, double top,
                   double width, Drawing& drawing) {
  double x = left;
  double y = top;
  for (const auto& [name, colour] : entries) {
    const double taken = 18 + text_width(name, kTextSize) + 18;
    if (x > left && x + taken > left + width) {
      x = left;
      y += 20;
    }
    drawing.rectangle(x, y - 10, 12, 12, colour);
    drawing.shapes.emplace_back(Label{.at = {x + 18, y}, .text = name, .size = kTextSize});
    x += taken;
  }
  return y + 20;
}

double share_of(uint32_t event, const RecordingView& view) {
  return event == kNever || view.events == 0 ? 0 : (event + 0.5) / static_cast<double>(view.events);
}

void add_marks(const RecordingView& view, Language language, StackedTimeline& timeline) {
  const auto text = [&](const char* key, int64_t bytes) {
    return say(Phrase{.key = key}.with("bytes", format_bytes(bytes)), language);
  };
  timeline.marks.push_back({.at = share_of(view.peak_allocated.event, view),
                            .text = text("page.mark-peak", view.peak_allocated.bytes),
                            .is_failure = false,
                            .bytes = view.peak_allocated.bytes});
  if (view.instant.failed) {
    timeline.marks.push_back({.at = share_of(view.instant.event, view),
                              .text = text("page.mark-failure", view.instant.request_bytes),
                              .is_failure = true,
                              .bytes = view.instant.active_bytes});
  }
  if (view.capacity.high_bytes > 0) {
    const char* key = view.capacity.is_limit ? "page.mark-limit" : "page.mark-capacity";
    timeline.limits.push_back({.bytes = view.capacity.high_bytes, .text = text(key, view.capacity.high_bytes)});
  }
}

}  // namespace

int64_t axis_step(int64_t most_bytes, int count) {
  const int64_t unit = most_bytes >= kGiB ? kGiB : most_bytes >= kMiB ? kMiB : kKiB;
  const double wanted = static_cast<double>(most_bytes) / static_cast<double>(unit) / count;
  double step = std::pow(10, std::floor(std::log10(std::max(wanted, 1e-3))));
  for (double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (step * factor < wanted) continue;
    step *= factor;
    break;
  }
  return std::max<int64_t>(1, std::llround(step * static_cast<double>(unit)));
}

std::string axis_text(int64_t bytes, int64_t most_bytes) {
  const int64_t unit = most_bytes >= kGiB ? kGiB : most_bytes >= kMiB ? kMiB : kKiB;
  const char* name = unit == kGiB ? "GiB" : unit == kMiB ? "MiB" : "KiB";
  if (bytes == 0) return "0";
  return fmt::format("{:.6g} {}", std::round(static_cast<double>(bytes) / static_cast<double>(unit) * 1000) / 1000,
                     name);
}

StackedTimeline timeline_of(const RecordingView& view, Layers by, const std::string& title, size_t columns,
                            Language language) {
  LayeredSeries series = layer_series(view, by, columns);
  StackedTimeline timeline;
  timeline.title = title;
  for (size_t i = 0; i < series.names.size(); ++i) {
    const bool is_last = i + 1 == series.names.size();
    std::string name = series.names[i];
    std::string colour(site_colour(i, series.names.size() - 1));
    if (by == Layers::category) {
      name = category_name(view, i, language);
      colour = category_colour(i);
    } else if (is_last) {
      name = say("page.other-sites", language);
    } else if (name.empty()) {
      name = say("site.none", language);
    }
    timeline.layers.push_back(
        {.name = std::move(name), .colour = std::move(colour), .bytes = std::move(series.layers[i])});
  }
  timeline.reserved = std::move(series.reserved);
  timeline.reserved_name = say("page.reserved", language);
  add_marks(view, language, timeline);
  if (view.steps.steps.size() <= kMostBands) {
    for (size_t i = 1; i < view.steps.steps.size(); i += 2) {
      const StepUse& step = view.steps.steps[i];
      timeline.bands.push_back(
          {.begin = static_cast<double>(step.begin) / view.events, .end = static_cast<double>(step.end) / view.events});
    }
  }
  timeline.left_label = say(Phrase{.key = "page.event"}.with("event", "0"), language);
  timeline.right_label =
      say(Phrase{.key = "page.event"}.with("event", format_count(std::max<int64_t>(view.events - 1, 0))), language);
  return timeline;
}

Drawing draw_timeline(const StackedTimeline& timeline, const ChartSize& size) {
  Drawing drawing{.width = size.width, .height = size.height, .title = timeline.title, .shapes = {}};
  const int64_t most = most_of(timeline);
  const Plot plot{.left = kLeft,
                  .top = kTop,
                  .width = size.width - kLeft - kRight,
                  .height = size.height - kTop - 30,
                  .most = static_cast<double>(most) * 1.06};
  drawing.shapes.emplace_back(Label{.at = {kLeft, 24}, .text = timeline.title, .size = 15});
  for (const StackedTimeline::Band& band : timeline.bands) {
    drawing.rectangle(plot.x(band.begin), plot.top, plot.width * (band.end - band.begin), plot.height, kFaint, 0.35);
  }
  draw_axis(plot, most, drawing);
  draw_layers(timeline, plot, drawing);
  if (!timeline.reserved.empty()) {
    drawing.shapes.emplace_back(Path{.points = steps_of(timeline.reserved, plot), .colour = kInk, .width = 1.25});
  }
  draw_marks(timeline, plot, drawing);
  const double below = plot.top + plot.height + 18;
  drawing.shapes.emplace_back(Label{.at = {plot.left, below}, .text = timeline.left_label, .size = 11});
  drawing.shapes.emplace_back(
      Label{.at = {plot.left + plot.width, below}, .text = timeline.right_label, .size = 11, .anchor = Anchor::end});
  std::vector<std::pair<std::string, std::string>> entries;
  for (const StackedTimeline::Layer& layer : timeline.layers) {
    const bool is_empty = std::all_of(layer.bytes.begin(), layer.bytes.end(), [](int64_t bytes) { return bytes == 0; });
    if (!is_empty) entries.emplace_back(layer.name, layer.colour);
  }
  if (!timeline.reserved.empty()) entries.emplace_back(timeline.reserved_name, kInk);
  drawing.height = draw_legend(entries, plot.left, below + 26, plot.width, drawing);
  return drawing;
}

void append(const Drawing& part, double x, double y, Drawing& to) {
  const auto move = [&](Point& point) { point.x += x, point.y += y; };
  for (std::variant<Polygon, Path, Label> shape : part.shapes) {
    if (Polygon* polygon = std::get_if<Polygon>(&shape))
      std::for_each(polygon->points.begin(), polygon->points.end(), move);
    if (Path* path = std::get_if<Path>(&shape)) std::for_each(path->points.begin(), path->points.end(), move);
    if (Label* label = std::get_if<Label>(&shape)) move(label->at);
    to.shapes.push_back(std::move(shape));
  }
}

void append_below(const Drawing& part, Drawing& to) {
  append(part, 0, to.height, to);
  to.height += part.height;
}

Drawing draw_differences(const std::vector<SignedPart>& parts, const std::string& title) {
  constexpr double kRow = 22;
  constexpr double kNames = 420;  // names to the left of the bars
  constexpr double kNumbers = 110;
  constexpr const char* kMore = "#ee7733";
  constexpr const char* kLess = "#4477aa";
  Drawing drawing{.width = 1200, .height = kRow * static_cast<double>(parts.size()) + 8, .title = title, .shapes = {}};
  int64_t most_more = 0;
  int64_t most_less = 0;
  for (const SignedPart& part : parts) {
    most_more = std::max(most_more, part.bytes);
    most_less = std::max(most_less, -part.bytes);
  }
  if (most_more + most_less == 0) return Drawing{};
  const double room = drawing.width - kNames - 2 * kNumbers;
  const double scale = room / static_cast<double>(most_more + most_less);
  const double middle = kNames + kNumbers + static_cast<double>(most_less) * scale;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double y = 4 + kRow * static_cast<double>(i);
    const double length = std::abs(static_cast<double>(parts[i].bytes)) * scale;
    const bool is_more = parts[i].bytes > 0;
    drawing.rectangle(is_more ? middle : middle - length, y + 3, std::max(length, 1.0), kRow - 7,
                      is_more ? kMore : kLess);
    drawing.shapes.emplace_back(
        Label{.at = {kNames - 8, y + 15}, .text = parts[i].name, .size = kTextSize, .anchor = Anchor::end});
    drawing.shapes.emplace_back(Label{.at = {is_more ? middle + length + 6 : middle - length - 6, y + 15},
                                      .text = format_bytes_signed(parts[i].bytes),
                                      .size = kTextSize,
                                      .anchor = is_more ? Anchor::start : Anchor::end});
  }
  drawing.shapes.emplace_back(Path{.points = {{middle, 2}, {middle, drawing.height - 2}}, .colour = kInk, .width = 1});
  return drawing;
}

void add_balance(const std::vector<BalancePart>& parts, const std::string& title, Drawing& drawing) {
  int64_t total = 0;
  for (const BalancePart& part : parts) total += part.bytes;
  if (total <= 0) return;
  const double top = drawing.height + 12;
  const double width = drawing.width - kLeft - kRight;
  drawing.shapes.emplace_back(Label{.at = {kLeft, top + 12}, .text = title, .size = 15});
  double x = kLeft;
  std::vector<std::pair<std::string, std::string>> entries;
  for (const BalancePart& part : parts) {
    const double taken = width * static_cast<double>(part.bytes) / static_cast<double>(total);
    drawing.rectangle(x, top + 24, taken, 28, part.colour);
    x += taken;
    if (part.bytes > 0) entries.emplace_back(part.name + " " + format_bytes(part.bytes), part.colour);
  }
  drawing.height = draw_legend(entries, kLeft, top + 74, width, drawing) + 6;
}

}  // namespace oomscope
