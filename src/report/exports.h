// The report for other programs and other places: tables of events and live sets, JSON, Markdown, Perfetto.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "report/report_page.h"

namespace oomscope {

// One row an event; active and reserved bytes right after it. Of the first recording.
[[nodiscard]] std::string events_csv(const RecordingView& view);
// One row a block that was live at the instant (the failure, or the peak).
[[nodiscard]] std::string live_csv(const RecordingView& view);
// "oomscope.report/1": the answer as `why --json` gives it, and of each recording peaks, steps, the live set, events.
[[nodiscard]] std::string report_json(const Page& page, const nlohmann::ordered_json& answer);
// For an issue or a chat. Text from the recording cannot become markup.
[[nodiscard]] std::string report_markdown(const Page& page);
// perfetto.protos.Trace: counters, phases, steps, failures, and the largest allocations as slices.
[[nodiscard]] std::string perfetto_trace(const Page& page);

}  // namespace oomscope
