#include "report/show_document.h"

#include <algorithm>

#include "base/bytes_text.h"
#include "words/words.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSegmentsShown = 8;

// A stack without Python frames has no site.
std::string site_name(const std::string& site, Language language) {
  return site.empty() ? say("site.none", language) : site;
}
Json site_json(const std::string& site) { return site.empty() ? Json(nullptr) : Json(site); }

std::string show_word(std::string_view id, Language language) { return say("show." + std::string(id), language); }

std::string row_name(const std::string& key, GroupBy by, Language language) {
  switch (by) {
    case GroupBy::stack: return site_name(key, language);
    case GroupBy::category: return say("category." + key, language);
    case GroupBy::size: return key;
    case GroupBy::stream:
      return key.empty() ? show_word("stream-unknown", language)
                         : say(Phrase{.key = "show.stream"}.with("id", key), language);
    case GroupBy::segment: return key.empty() ? show_word("segment-gone", language) : key;
  }
  return key;
}

Json key_json(const std::string& key, GroupBy by) {
  if (by == GroupBy::stack) return site_json(key);
  return by == GroupBy::category ? Json(key) : Json(row_name(key, by, Language::english));
}

std::string others_text(size_t count, Language language) {
  return say(Phrase{.key = "show.others"}.with("count", format_count(static_cast<int64_t>(count))), language);
}

Table totals_table(const Shown& shown, Language language) {
  const ShowTotals& totals = shown.totals;
  Table table{.title = say(Phrase{.key = "show.at"}.with("at", shown.at), language),
              .columns = {{.header = ""},
                          {.header = show_word("now", language), .align = Align::right},
                          {.header = show_word("peak", language), .align = Align::right},
                          {.header = "", .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  auto add = [&](const std::string& name, int64_t now, int64_t peak) {
    table.rows.push_back(Row{
        .cells = {show_word(name, language), format_mib(now), format_mib(peak), show_word(name + "-means", language)},
        .style = Style::plain});
  };
  add("requested", totals.requested, totals.peak_requested);
  add("allocated", totals.allocated, totals.peak_allocated);
  if (totals.active != totals.allocated) {
    table.rows.push_back(Row{
        .cells = {show_word("active", language), format_mib(totals.active), "", show_word("active-means", language)},
        .style = Style::plain});
  }
  add("reserved", totals.reserved, totals.peak_reserved);
  return table;
}

const char* title_of(GroupBy by) {
  switch (by) {
    case GroupBy::stack: return "by-stack";
    case GroupBy::category: return "by-category";
    case GroupBy::size: return "by-size";
    case GroupBy::stream: return "by-stream";
    case GroupBy::segment: return "by-segment";
  }
  return "";
}

// The user's own lines first, then the rest; each by bytes. Rows sum to the live bytes.
Table rows_table(const Shown& shown, GroupBy by, int64_t top, Language language) {
  Table table{.title = show_word(title_of(by), language),
              .columns = {{.header = show_word("bytes", language), .align = Align::right},
                          {.header = show_word("share", language), .align = Align::right},
                          {.header = show_word("blocks", language), .align = Align::right},
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
                                       format_count(row.count), row_name(row.key, by, language)},
                             .style = Style::plain});
  }
  if (others > 0) {
    table.rows.push_back(Row{.cells = {format_mib(rest.bytes), format_percent(rest.bytes, shown.totals.active),
                                       format_count(rest.count), others_text(others, language)},
                             .style = Style::dim});
  }
  int64_t blocks = 0;
  for (const ShowRow& row : rows) blocks += row.count;
  table.total =
      Row{.cells = {format_mib(shown.totals.active), "", format_count(blocks), show_word("live-and-pending", language)},
          .style = Style::bold};
  return table;
}

std::string confidence_word(Confidence confidence, Language language) {
  return say("confidence." + std::string(name_of(confidence)), language);
}

// What was live by what it is, with the most of each that ever was. Rows sum to the live bytes.
Table categories_table(const Shown& shown, Language language) {
  Table table{.title = show_word(title_of(GroupBy::category), language),
              .columns = {{.header = show_word("bytes", language), .align = Align::right},
                          {.header = show_word("share", language), .align = Align::right},
                          {.header = show_word("blocks", language), .align = Align::right},
                          {.header = show_word("what", language)},
                          {.header = show_word("most", language), .align = Align::right},
                          {.header = show_word("sure", language)},
                          {.header = show_word("because", language), .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  int64_t blocks = 0;
  for (const ShowRow& row : shown.rows) {
    blocks += row.count;
    table.rows.push_back(
        Row{.cells = {format_mib(row.bytes), format_percent(row.bytes, shown.totals.active), format_count(row.count),
                      row_name(row.key, GroupBy::category, language), format_mib(row.most_bytes),
                      confidence_word(row.confidence, language), say("reason." + std::string(row.reason), language)},
            .style = row.bytes == 0 ? Style::dim : Style::plain});
  }
  table.total = Row{.cells = {format_mib(shown.totals.active), "", format_count(blocks), show_word("active", language)},
                    .style = Style::bold};
  const ShownStructure& structure = *shown.structure;
  Phrase placed;
  if (structure.frameless_requests > 0) {
    placed = Phrase{.key = "show.structure-placed"}.with(
        "share", format_percent(structure.frameless_placed, structure.frameless_requests));
  }
  table.note =
      say(Phrase{.key = "show.structure"}
              .with("steps", std::to_string(structure.steps))
              .with("passes", std::to_string(structure.passes))
              .with("confidence", confidence_word(structure.confidence, language))
              .with("frameless", format_percent(structure.frameless_requests, std::max<int64_t>(structure.requests, 1)))
              .with("placed", std::move(placed)),
          language);
  return table;
}

Table segments_table(const std::vector<SegmentHarm>& segments, Language language) {
  Table table{.title = show_word("segments", language),
              .columns = {{.header = show_word("pinned", language), .align = Align::right},
                          {.header = show_word("of", language), .align = Align::right},
                          {.header = show_word("map", language)},
                          {.header = show_word("pool", language), .may_drop = true},
                          {.header = show_word("smallest", language), .may_shrink = true}},
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
    table.rows.push_back(Row{
        .cells = {format_mib(segment.free_bytes), format_mib(segment.size), segment.map, say(segment.pool, language),
                  format_bytes(segment.smallest_live) + " " + site_name(segment.smallest_site, language)},
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
                                       others_text(segments.size() - kSegmentsShown, language)},
                             .style = Style::dim});
  }
  table.total = Row{.cells = {format_mib(free_bytes), format_mib(size), "", "", ""}, .style = Style::bold};
  return table;
}

Json payload_of(const Shown& shown, GroupBy by, const std::vector<SegmentHarm>& segments) {
  const ShowTotals& totals = shown.totals;
  Json payload = {
      {"schema", "oomscope.show/1"}, {"at", say(shown.at, Language::english)}, {"event", event_json(shown.event)}};
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
    Json entry = {{"key", key_json(row.key, by)}, {"bytes", row.bytes}, {"count", row.count}};
    if (by == GroupBy::stack) entry["user_code"] = row.user_code;
    if (by == GroupBy::category) {
      entry["most_bytes"] = row.most_bytes;
      entry["most_at"] = row.most_at;
      entry["reason"] = say("reason." + std::string(row.reason), Language::english);
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
                                     {"pool", say(segment.pool, Language::english)},
                                     {"map", segment.map}});
    }
  }
  payload["caveats"] = caveats_json(shown.caveats);
  return payload;
}

}  // namespace

Json event_json(uint32_t event) { return event == kNoEvent ? Json(nullptr) : Json(event); }

Document show_document(const Shown& shown, GroupBy by, const std::vector<SegmentHarm>& segments, int64_t top,
                       Language language) {
  Document document;
  document.sections.push_back(Section{.body = totals_table(shown, language), .joined = false});
  if (!shown.allocated_curve.empty()) {
    document.sections.push_back(
        Section{.body = Curve{.title = show_word("curve", language),
                              .values = shown.allocated_curve,
                              .left_label = say(Phrase{.key = "show.event"}.with("event", "0"), language),
                              .right_label = format_count(shown.totals.events)},
                .joined = false});
  }
  document.sections.push_back(
      Section{.body = shown.structure ? categories_table(shown, language) : rows_table(shown, by, top, language),
              .joined = false});
  if (!segments.empty())
    document.sections.push_back(Section{.body = segments_table(segments, language), .joined = false});
  document.sections.push_back(Section{.body = caveat_list(shown.caveats, language), .joined = false});
  document.payload = payload_of(shown, by, segments);
  return document;
}

}  // namespace oomscope
