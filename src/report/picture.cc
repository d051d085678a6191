#include "report/picture.h"

#include <algorithm>
#include <array>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

constexpr double kWide = 1200;
constexpr double kRankWidth = 240;
constexpr double kRankHeight = 90;

Drawing rank_chart(const RankFacts& facts, const std::string& name, int64_t most, bool stands_out) {
  Drawing drawing{.width = kRankWidth, .height = kRankHeight, .title = name, .shapes = {}};
  const auto y = [&](int64_t bytes) {
    return kRankHeight - 2 - (kRankHeight - 6) * static_cast<double>(bytes) / static_cast<double>(most);
  };
  const auto x = [&](size_t point) {
    return kRankWidth * static_cast<double>(point) / static_cast<double>(facts.curve.size());
  };
  Polygon area{.points = {{0, y(0)}}, .colour = stands_out ? "#ee7733" : "#4477aa"};
  for (size_t i = 0; i < facts.curve.size(); ++i) {
    area.points.push_back({x(i), y(facts.curve[i])});
    area.points.push_back({x(i + 1), y(facts.curve[i])});
  }
  area.points.push_back({kRankWidth, y(0)});
  drawing.shapes.emplace_back(std::move(area));
  const double reserved = y(facts.peak_reserved_bytes);
  drawing.shapes.emplace_back(Path{.points = {{0, reserved}, {kRankWidth, reserved}}, .colour = kInk, .dashed = true});
  return drawing;
}

Drawing draw_ranks(const std::vector<RankPicture>& ranks, const std::string& title) {
  constexpr double kGap = 32;
  constexpr double kCaption = 36;
  constexpr size_t kColumns = 4;
  Drawing drawing{.width = kWide, .height = 44, .title = title, .shapes = {}};
  drawing.shapes.emplace_back(Label{.at = {kGap, 26}, .text = title, .size = 15});
  const double top = drawing.height;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const double x = kGap + static_cast<double>(i % kColumns) * (kRankWidth + kGap);
    const double y = top + static_cast<double>(i / kColumns) * (kRankHeight + kCaption + kGap);
    const char* colour = ranks[i].failed ? "#cc3311" : kInk;
    drawing.shapes.emplace_back(Label{.at = {x, y + 12}, .text = ranks[i].chart.title, .size = 13, .colour = colour});
    drawing.shapes.emplace_back(Label{.at = {x, y + 28}, .text = ranks[i].numbers, .size = 10, .colour = colour});
    append(ranks[i].chart, x, y + kCaption, drawing);
    drawing.height = y + kCaption + kRankHeight + kGap;
  }
  return drawing;
}

}  // namespace

std::string_view balance_colour(std::string_view id) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kColours = {{
      {"balance.live-tensors", "#4477aa"},
      {"balance.tails", "#777777"},
      {"balance.pending", "#aa3377"},
      {"balance.too-small", "#ee7733"},
      {"balance.oversize", "#ccbb44"},
      {"balance.free-in-large-pool", "#88ccee"},
      {"balance.free-in-small-pool", "#44bb99"},
      {"balance.other-streams", "#ee99aa"},
      {"balance.private-pools", "#7766cc"},
      {"balance.free-on-card", "#cfd8e3"},
      {"balance.cached", "#88ccee"},
  }};
  for (const auto& [name, colour] : kColours) {
    if (name == id) return colour;
  }
  return "#aaaaaa";
}

std::vector<RankPicture> rank_pictures(const RanksReport& report, Language language) {
  int64_t most = 1;
  for (const Rank& rank : report.ranks) most = std::max(most, rank.facts.peak_reserved_bytes);
  std::vector<RankPicture> pictures;
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const Rank& rank = report.ranks[i];
    if (rank.error || rank.facts.curve.empty()) continue;
    const auto is_it = [&](const Outlier& outlier) { return outlier.rank == i; };
    const std::vector<Outlier>& outliers = report.comparison.outliers;
    const bool stands_out = std::any_of(outliers.begin(), outliers.end(), is_it);
    const auto same_file = [&](const Rank& other) { return other.path == rank.path; };
    const bool with_device = std::count_if(report.ranks.begin(), report.ranks.end(), same_file) > 1;
    const std::string name = rank_label(rank, with_device, language);
    pictures.push_back({.chart = rank_chart(rank.facts, name, most, stands_out),
                        .numbers = say(Phrase{.key = rank.facts.failed ? "page.rank-failed" : "page.rank-peak"}
                                           .with("allocated", format_bytes(rank.facts.peak_allocated_bytes))
                                           .with("reserved", format_bytes(rank.facts.peak_reserved_bytes)),
                                       language),
                        .failed = rank.facts.failed,
                        .stands_out = stands_out});
  }
  return pictures;
}

int64_t common_scale(const Page& page) {
  int64_t most = 0;
  for (const PageRecording& recording : page.recordings) {
    most = std::max({most, recording.view.peak_reserved.bytes, recording.view.capacity.high_bytes});
  }
  return most;
}

Drawing picture_of(const Page& page, Language language) {
  Drawing drawing{.width = kWide, .height = 0, .title = page.title, .shapes = {}};
  if (page.ranks) append_below(draw_ranks(rank_pictures(*page.ranks, language), page.title), drawing);
  if (!page.differences.empty()) {
    drawing.height += 16;
    append_below(draw_differences(page.differences, page.title), drawing);
  }
  const ChartSize size;
  for (const PageRecording& recording : page.recordings) {
    if (recording.view.events == 0) continue;
    StackedTimeline timeline = timeline_of(recording.view, Layers::category, recording.name, size.columns, language);
    timeline.room_bytes = common_scale(page);
    append_below(draw_timeline(timeline, size), drawing);
  }
  if (!page.answer) return drawing;
  std::vector<BalancePart> parts;
  for (const Answer::BalancePart& part : page.answer->balance) {
    if (part.bytes) {
      parts.push_back({.name = part.name, .colour = std::string(balance_colour(part.id)), .bytes = *part.bytes});
    }
  }
  add_balance(parts, say("page.balance", language), drawing);
  return drawing;
}

}  // namespace oomscope
