// `show` as a document.
#pragma once

#include <string>
#include <vector>

#include "analysis/show.h"
#include "report/document.h"

namespace oomscope {

// The number of an event; null for the time before the first one.
[[nodiscard]] nlohmann::ordered_json event_json(uint32_t event);

// `segments` may be empty (it costs a second replay): then the map is left out.
[[nodiscard]] Document show_document(const Shown& shown, GroupBy by, const std::vector<SegmentHarm>& segments,
                                     int64_t top, Language language);

}  // namespace oomscope
