#include "report/exports.h"

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/view_payload.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

std::string_view action_at(const RecordingView& view, uint32_t event) {
  const Life& life = view.lives[view.life_of[event]];
  if (event == life.begin) return "alloc";
  return event == life.free_requested ? "free_requested" : "free_completed";
}

// Quoted where a table program would cut or run it.
std::string csv_text(std::string_view text) {
  if (text.empty()) return "";
  const bool is_formula = std::string_view("=+-@").find(text.front()) != std::string_view::npos;
  if (!is_formula && text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = is_formula ? "\"'" : "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string pool_text(const RecordingView& view, uint32_t pool) {
  const PoolId id = pool < view.pools.size() ? view.pools[pool] : PoolId{};
  return fmt::format("{}.{}", id.first, id.second);
}

uint64_t stream_of(const RecordingView& view, uint32_t stream) {
  return stream < view.streams.size() ? view.streams[stream] : 0;
}

std::string time_text(const RecordingView& view, uint32_t event) {
  return view.time_us.empty() || event >= view.time_us.size() ? "" : std::to_string(view.time_us[event]);
}

// Visits all that an event of the recording can be: a life's event, a change by the driver, a failed request.
template <class OnLife, class OnDriver, class OnFailure>
void walk_events(const RecordingView& view, OnLife on_life, OnDriver on_driver, OnFailure on_failure) {
  int64_t active = 0;
  int64_t reserved = 0;
  for (const Life& life : view.lives) {
    if (life.begin != kNever) break;
    active += view.kinds[life.kind].size;
  }
  size_t driver = 0;
  size_t failure = 0;
  for (; driver < view.driver.size() && view.driver[driver].event == kNever; ++driver) {
    reserved += view.driver[driver].size;
  }
  for (uint32_t event = 0; event < view.events; ++event) {
    if (view.life_of[event] != kNever) {
      const Life& life = view.lives[view.life_of[event]];
      if (event == life.begin) active += view.kinds[life.kind].size;
      if (event == life.free_completed) active -= view.kinds[life.kind].size;
      on_life(event, life, active, reserved);
    } else if (driver < view.driver.size() && view.driver[driver].event == event) {
      const DriverChange& change = view.driver[driver++];
      reserved += change.is_gain ? change.size : -change.size;
      on_driver(event, change, active, reserved);
    } else if (failure < view.failures.size() && view.failures[failure].event == event) {
      on_failure(event, view.failures[failure++], active, reserved);
    }
  }
}

std::string_view driver_action(const DriverChange& change) {
  if (change.is_pages) return change.is_gain ? "segment_map" : "segment_unmap";
  return change.is_gain ? "segment_alloc" : "segment_free";
}

// Innermost frame first: "f (a.py:3) < g (b.py:9)".
std::string stack_text(const RecordingView& view, uint32_t stack) {
  std::string text;
  for (uint32_t node = view.stack_nodes[stack]; node != 0; node = view.nodes[node].parent) {
    const ViewFrame& frame = view.frames[view.nodes[node].frame];
    text += (text.empty() ? "" : " < ") + frame.name + " (" + frame.file + ":" + std::to_string(frame.line) + ")";
  }
  return text;
}

Json or_null(uint32_t event) { return event == kNever ? Json(nullptr) : Json(event); }
Json peak_json(const Peak& peak) { return {{"bytes", peak.bytes}, {"event", or_null(peak.event)}}; }

Json live_json(const RecordingView& view) {
  Json rows = Json::array();
  for (const Life& life : view.lives) {
    if (!holds_after(life, view.instant.event)) continue;
    const LifeKind& kind = view.kinds[life.kind];
    rows.push_back({{"begin", or_null(life.begin)},
                    {"requested", kind.requested},
                    {"size", kind.size},
                    {"address", life.address},
                    {"stream", stream_of(view, kind.stream)},
                    {"pool", pool_text(view, kind.pool)},
                    {"category", view.categories[kind.category]},
                    {"site", view.sites[kind.site].text.empty() ? Json(nullptr) : Json(view.sites[kind.site].text)}});
  }
  return rows;
}

Json steps_json(const StepTable& table) {
  Json steps = {{"are_passes", table.are_passes},
                {"first_bad", table.first_bad ? Json(table.steps[*table.first_bad].number) : Json(nullptr)},
                {"rows", Json::array()}};
  for (const StepUse& step : table.steps) {
    steps["rows"].push_back({{"number", step.number},
                             {"begin", step.begin},
                             {"end", step.end},
                             {"peak_allocated", step.peak_allocated},
                             {"peak_event", step.peak_event},
                             {"left", step.left_bytes},
                             {"finished", step.finished}});
  }
  return steps;
}

// Columns, written as text: a value of nlohmann each would take gigabytes at a million events.
std::string events_json(const RecordingView& view) {
  std::string event_column;
  std::string action;
  std::string size;
  std::string active;
  std::string reserved;
  const auto add = [&](uint32_t event, std::string_view name, int64_t bytes, int64_t active_now, int64_t reserved_now) {
    const char* comma = event_column.empty() ? "" : ",";
    event_column += comma + std::to_string(event);
    action += fmt::format("{}\"{}\"", comma, name);
    size += comma + std::to_string(bytes);
    active += comma + std::to_string(active_now);
    reserved += comma + std::to_string(reserved_now);
  };
  walk_events(
      view,
      [&](uint32_t event, const Life& life, int64_t active_now, int64_t reserved_now) {
        add(event, action_at(view, event), view.kinds[life.kind].size, active_now, reserved_now);
      },
      [&](uint32_t event, const DriverChange& change, int64_t active_now, int64_t reserved_now) {
        add(event, driver_action(change), change.size, active_now, reserved_now);
      },
      [&](uint32_t event, const FailedAttempt& failure, int64_t active_now, int64_t reserved_now) {
        add(event, "oom", failure.size, active_now, reserved_now);
      });
  return fmt::format("{{\"event\":[{}],\"action\":[{}],\"size\":[{}],\"active\":[{}],\"reserved\":[{}]}}", event_column,
                     action, size, active, reserved);
}

// ---- Markdown

std::string markdown_text(std::string_view text) {
  std::string safe;
  for (char c : printable(text)) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|#@").find(c) != std::string_view::npos) safe += '\\';
      safe += c;
    }
  }
  return safe;
}

// Between fences that are longer than any run of backticks inside.
std::string fenced(const std::vector<std::string>& lines) {
  size_t longest = 2;
  std::string text;
  for (const std::string& line : lines) {
    size_t run = 0;
    for (char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
    text += printable(line) + "\n";
  }
  const std::string fence(longest + 1, '`');
  return fence + "\n" + text + fence + "\n\n";
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (true) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string markdown_row(const Table& table, const Row& row) {
  std::string text = "|";
  for (size_t c = 0; c < table.columns.size(); ++c) {
    text += " " + markdown_text(c < row.cells.size() ? row.cells[c] : "") + " |";
  }
  return text + "\n";
}

std::string title_of(const std::string& title) { return title.empty() ? "" : "**" + markdown_text(title) + "**\n\n"; }

std::string render(const Sentence& sentence) { return markdown_text(sentence.text) + "\n\n"; }
std::string render(const Curve&) { return ""; }
std::string render(const Lines& lines) {
  return lines.lines.empty() ? "" : title_of(lines.title) + fenced(lines.lines);
}
std::string render(const List& list) {
  std::string text = list.entries.empty() ? "" : title_of(list.title);
  for (const std::string& entry : list.entries) text += "- " + markdown_text(entry) + "\n";
  return text + (list.entries.empty() ? "" : "\n");
}
std::string render(const Table& table) {
  Row header;
  std::string rule = "|";
  for (const Column& column : table.columns) {
    header.cells.push_back(column.header);
    rule += column.align == Align::right ? " ---: |" : " --- |";
  }
  std::string text = title_of(table.title) + markdown_row(table, header) + rule + "\n";
  for (const Row& row : table.rows) text += markdown_row(table, row);
  if (table.total) text += markdown_row(table, *table.total);
  return text + "\n" + (table.note.empty() ? "" : markdown_text(table.note) + "\n\n");
}

std::string markdown_sections(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections) {
    text += std::visit([](const auto& body) { return render(body); }, section.body);
  }
  return text;
}

std::string markdown_answer(const Answer& answer, Language language) {
  std::string text = "### " + markdown_text(answer.verdict) + "\n\n";
  if (!answer.outlook.empty()) text += markdown_text(answer.outlook) + "\n\n";
  text += markdown_text(answer.proof) + "  \n" + markdown_text(answer.trust) + "\n\n";
  Table balance{
      .title = say("page.balance", language),
      .columns = {{.header = ""}, {.header = say("page.bytes", language), .align = Align::right}, {.header = ""}},
      .rows = {},
      .total = std::nullopt,
      .note = ""};
  for (const Answer::BalancePart& part : answer.balance) {
    balance.rows.push_back(Row{.cells = {part.name, part.bytes ? format_bytes(*part.bytes) : "?", part.source}});
  }
  balance.total = Row{.cells = {say("balance.total", language), format_bytes(answer.balance_total), ""}};
  text += render(balance);
  if (!answer.changes.empty()) text += title_of(say("page.changes", language));
  for (size_t i = 0; i < answer.changes.size(); ++i) {
    const Answer::Change& change = answer.changes[i];
    text += fmt::format("{}. {}{}\n\n", i + 1, markdown_text(change.text), markdown_text(change.effect));
    if (!change.commands.empty()) text += fenced(lines_of(change.commands.front()));
  }
  return text;
}

}  // namespace

std::string events_csv(const RecordingView& view) {
  std::string csv = "event,time_us,action,address,requested,size,stream,pool,category,site,active,reserved\n";
  csv.reserve(size_t{view.events} * 96);
  const auto out = std::back_inserter(csv);
  walk_events(
      view,
      [&](uint32_t event, const Life& life, int64_t active, int64_t reserved) {
        const LifeKind& kind = view.kinds[life.kind];
        fmt::format_to(out, "{},{},{},{:#x},{},{},{},{},{},{},{},{}\n", event, time_text(view, event),
                       action_at(view, event), life.address, kind.requested, kind.size, stream_of(view, kind.stream),
                       pool_text(view, kind.pool), view.categories[kind.category], csv_text(view.sites[kind.site].text),
                       active, reserved);
      },
      [&](uint32_t event, const DriverChange& change, int64_t active, int64_t reserved) {
        fmt::format_to(out, "{},{},{},{:#x},,{},{},{},,,{},{}\n", event, time_text(view, event), driver_action(change),
                       change.address, change.size, stream_of(view, change.stream), pool_text(view, change.pool),
                       active, reserved);
      },
      [&](uint32_t event, const FailedAttempt& failure, int64_t active, int64_t reserved) {
        fmt::format_to(out, "{},{},oom,,,{},{},{},,,{},{}\n", event, time_text(view, event), failure.size,
                       stream_of(view, failure.stream), pool_text(view, failure.pool), active, reserved);
      });
  return csv;
}

std::string live_csv(const RecordingView& view) {
  std::string csv = "begin,time_us,address,requested,size,stream,pool,category,reason,site,stack\n";
  for (const Life& life : view.lives) {
    if (!holds_after(life, view.instant.event)) continue;
    const LifeKind& kind = view.kinds[life.kind];
    csv +=
        fmt::format("{},{},{:#x},{},{},{},{},{},{},{},{}\n", life.begin == kNever ? "" : std::to_string(life.begin),
                    time_text(view, life.begin), life.address, kind.requested, kind.size, stream_of(view, kind.stream),
                    pool_text(view, kind.pool), view.categories[kind.category], csv_text(view.reasons[kind.reason]),
                    csv_text(view.sites[kind.site].text), csv_text(stack_text(view, kind.stack)));
  }
  return csv;
}

std::string report_json(const Page& page, const Json& answer) {
  std::string text =
      "{\"schema\":\"oomscope.report/1\",\"answer\":" + answer.dump(-1, ' ', false, Json::error_handler_t::replace) +
      ",\"recordings\":[";
  for (size_t i = 0; i < page.recordings.size(); ++i) {
    const RecordingView& view = page.recordings[i].view;
    const Json facts = {{"name", page.recordings[i].name},
                        {"device", view.device},
                        {"event_count", view.events},
                        {"peak_allocated", peak_json(view.peak_allocated)},
                        {"peak_reserved", peak_json(view.peak_reserved)},
                        {"peak_requested", peak_json(view.peak_requested)},
                        {"instant", {{"event", or_null(view.instant.event)}, {"failed", view.instant.failed}}},
                        {"steps", steps_json(view.steps)},
                        {"live", live_json(view)}};
    std::string object = facts.dump(-1, ' ', false, Json::error_handler_t::replace);
    object.pop_back();
    text += (i == 0 ? "" : ",") + object + ",\"events\":" + events_json(view) + "}";
  }
  return text + "]}\n";
}

std::string report_markdown(const Page& page) {
  const Language language = page.language;
  std::string text;
  if (!page.before.empty()) text += markdown_sections(page.before);
  if (page.answer) text += markdown_answer(*page.answer, language);
  if (page.recordings.size() == 1 && !page.recordings.front().view.lives.empty()) {
    constexpr size_t kSites = 10;
    constexpr size_t kSteps = 12;
    const RecordingView& view = page.recordings.front().view;
    Table sites = sites_table(view, kSites, language);
    sites.title = sites_title(view, language);
    text += render(sites);
    if (!view.steps.steps.empty()) {
      Table steps = steps_table(view, kSteps, language);
      steps.title = say(view.steps.are_passes ? "page.passes-title" : "page.steps-title", language);
      text += render(steps);
    }
  }
  if (page.answer) {
    text += "<details><summary>" + markdown_text(say("page.details", language)) + "</summary>\n\n" +
            markdown_sections(page.answer->details) + "</details>\n\n";
  }
  return text + markdown_sections(page.after);
}

}  // namespace oomscope
