#include "report/show_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "words/words.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSegmentsShown = 8;

// A stack without Python frames has no site.
std::string site_name(const std::string& site) { return site.empty() ? say("site.none", Language::english) : site; }
Json site_json(const std::string& site) { return site.empty() ? Json(nullptr) : Json(site); }

Table totals_table(const Shown& shown) {
  const ShowTotals& totals = shown.totals;
  Table table{.title = fmt::format("At the {}", shown.at),
              .columns = {{.header = ""},
                          {.header = "now", .align = Align::right},
                          {.header = "peak", .align = Align::right},
                          {.header = "", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  auto add = [&](const char* name, int64_t now, int64_t peak, const char* meaning) {
    table.rows.push_back(Row{.cells = {name, format_mib(now), format_mib(peak), meaning}, .style = Style::plain});
  };
  add("requested", totals.requested, totals.peak_requested, "what tensors asked for");
  add("allocated", totals.allocated, totals.peak_allocated, "blocks handed out, rounded");
  add("reserved", totals.reserved, totals.peak_reserved, "segments taken from the driver");
  return table;
}

const char* title_of(GroupBy by) {
  switch (by) {
    case GroupBy::stack: return "Live memory by line of code (your own code first)";
    case GroupBy::category: return "Live memory by what it is";
    case GroupBy::size: return "Live memory by requested size";
    case GroupBy::stream: return "Live memory by stream";
    case GroupBy::segment: return "Live memory by segment";
  }
  return "";
}

// The user's own lines first, then the rest; each by bytes. Rows sum to the live bytes.
Table rows_table(const Shown& shown, GroupBy by, int64_t top) {
  Table table{.title = title_of(by),
              .columns = {{.header = "bytes", .align = Align::right},
                          {.header = "share", .align = Align::right},
                          {.header = "blocks", .align = Align::right},
                          {.header = "", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  std::vector<ShowRow> rows = shown.rows;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ShowRow& a, const ShowRow& b) { return a.user_code && !b.user_code; });
  const size_t most = static_cast<size_t>(std::max<int64_t>(top, 1));
  ShowRow rest;
  size_t others = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const ShowRow& row = rows[i];
    if (rows.size() > most && i + 1 >= most) {
      rest.bytes += row.bytes;
      rest.count += row.count;
      others += 1;
      continue;
    }
    table.rows.push_back(Row{.cells = {format_mib(row.bytes), format_percent(row.bytes, shown.totals.active),
                                       format_count(row.count), site_name(row.key)},
                             .style = Style::plain});
  }
  if (others > 0) {
    table.rows.push_back(Row{.cells = {format_mib(rest.bytes), format_percent(rest.bytes, shown.totals.active),
                                       format_count(rest.count), fmt::format("[{} others]", others)},
                             .style = Style::dim});
  }
  int64_t blocks = 0;
  for (const ShowRow& row : rows) blocks += row.count;
  table.total = Row{.cells = {format_mib(shown.totals.active), "", format_count(blocks),
                              "live, those waiting for other streams included"},
                    .style = Style::bold};
  return table;
}

// What was live by what it is, with the most of each that ever was. Rows sum to the live bytes.
Table categories_table(const Shown& shown) {
  Table table{.title = title_of(GroupBy::category),
              .columns = {{.header = "bytes", .align = Align::right},
                          {.header = "share", .align = Align::right},
                          {.header = "blocks", .align = Align::right},
                          {.header = "what"},
                          {.header = "most ever", .align = Align::right},
                          {.header = "sure"},
                          {.header = "because, mostly", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  int64_t blocks = 0;
  for (const ShowRow& row : shown.rows) {
    blocks += row.count;
    table.rows.push_back(Row{
        .cells = {format_mib(row.bytes), format_percent(row.bytes, shown.totals.active), format_count(row.count),
                  row.key, format_mib(row.most_bytes), std::string(name_of(row.confidence)), std::string(row.reason)},
        .style = row.bytes == 0 ? Style::dim : Style::plain});
  }
  table.total = Row{.cells = {format_mib(shown.totals.active), "", format_count(blocks), "live"}, .style = Style::bold};
  const ShownStructure& structure = *shown.structure;
  table.note = fmt::format("{} optimizer steps and {} passes found (sure: {}); {} of requests have no Python frames",
                           structure.steps, structure.passes, name_of(structure.confidence),
                           format_percent(structure.frameless_requests, std::max<int64_t>(structure.requests, 1)));
  if (structure.frameless_requests > 0) {
    table.note += fmt::format(", {} of them placed in a backward",
                              format_percent(structure.frameless_placed, structure.frameless_requests));
  }
  return table;
}

Table segments_table(const std::vector<SegmentHarm>& segments) {
  Table table{.title = "Segments that live blocks pin (# full, + partly, . free)",
              .columns = {{.header = "pinned free", .align = Align::right},
                          {.header = "of", .align = Align::right},
                          {.header = "map"},
                          {.header = "pool", .may_drop = true},
                          {.header = "smallest block that pins it", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  int64_t free_bytes = 0;
  int64_t size = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentHarm& segment = segments[i];
    free_bytes += segment.free_bytes;
    size += segment.size;
    if (i >= kSegmentsShown) continue;
    table.rows.push_back(
        Row{.cells = {format_mib(segment.free_bytes), format_mib(segment.size), segment.map, segment.pool,
                      fmt::format("{} {}", format_bytes(segment.smallest_live), site_name(segment.smallest_site))},
            .style = Style::plain});
  }
  if (segments.size() > kSegmentsShown) {
    int64_t other_free = 0;
    int64_t other_size = 0;
    for (size_t i = kSegmentsShown; i < segments.size(); ++i) {
      other_free += segments[i].free_bytes;
      other_size += segments[i].size;
    }
    table.rows.push_back(Row{.cells = {format_mib(other_free), format_mib(other_size),
                                       fmt::format("[{} others]", segments.size() - kSegmentsShown)},
                             .style = Style::dim});
  }
  table.total = Row{.cells = {format_mib(free_bytes), format_mib(size), "", "", ""}, .style = Style::bold};
  return table;
}

Json payload_of(const Shown& shown, GroupBy by, const std::vector<SegmentHarm>& segments) {
  const ShowTotals& totals = shown.totals;
  Json payload = {{"schema", "oomscope.show/1"}, {"at", shown.at}, {"event", event_json(shown.event)}};
  payload["totals"] = {{"events", totals.events},
                       {"requested", totals.requested},
                       {"allocated", totals.allocated},
                       {"active", totals.active},
                       {"reserved", totals.reserved},
                       {"peak_requested", totals.peak_requested},
                       {"peak_allocated", totals.peak_allocated},
                       {"peak_reserved", totals.peak_reserved}};
  payload["rows"] = Json::array();
  for (const ShowRow& row : shown.rows) {
    Json entry = {{"key", site_json(row.key)}, {"bytes", row.bytes}, {"count", row.count}};
    if (by == GroupBy::stack) entry["user_code"] = row.user_code;
    if (by == GroupBy::category) {
      entry["most_bytes"] = row.most_bytes;
      entry["most_at"] = row.most_at;
      entry["reason"] = std::string(row.reason);
      entry["confidence"] = std::string(name_of(row.confidence));
    }
    payload["rows"].push_back(std::move(entry));
  }
  if (shown.structure) {
    payload["structure"] = {{"steps", shown.structure->steps},
                            {"passes", shown.structure->passes},
                            {"confidence", std::string(name_of(shown.structure->confidence))},
                            {"requests", shown.structure->requests},
                            {"frameless_requests", shown.structure->frameless_requests},
                            {"frameless_placed", shown.structure->frameless_placed}};
  }
  if (!segments.empty()) {
    payload["segments"] = Json::array();
    for (const SegmentHarm& segment : segments) {
      payload["segments"].push_back({{"address", segment.address},
                                     {"size", segment.size},
                                     {"free", segment.free_bytes},
                                     {"live_blocks", segment.live_blocks},
                                     {"smallest_live", segment.smallest_live},
                                     {"smallest_site", site_json(segment.smallest_site)},
                                     {"pool", segment.pool},
                                     {"map", segment.map}});
    }
  }
  payload["caveats"] = caveats_json(shown.caveats);
  return payload;
}

}  // namespace

Json event_json(uint32_t event) { return event == kNoEvent ? Json(nullptr) : Json(event); }

Document show_document(const Shown& shown, GroupBy by, const std::vector<SegmentHarm>& segments, int64_t top) {
  Document document;
  document.sections.push_back(Section{.body = totals_table(shown), .joined = false});
  if (!shown.allocated_curve.empty()) {
    document.sections.push_back(Section{.body = Curve{.title = "Allocated over all events",
                                                      .values = shown.allocated_curve,
                                                      .left_label = "event 0",
                                                      .right_label = format_count(shown.totals.events)},
                                        .joined = false});
  }
  document.sections.push_back(
      Section{.body = shown.structure ? categories_table(shown) : rows_table(shown, by, top), .joined = false});
  if (!segments.empty()) document.sections.push_back(Section{.body = segments_table(segments), .joined = false});
  document.sections.push_back(Section{.body = caveat_list(shown.caveats), .joined = false});
  document.payload = payload_of(shown, by, segments);
  return document;
}

}  // namespace oomscope
