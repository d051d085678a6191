// `show` as a document.
#pragma once

#include <string>
#include <vector>

#include "analysis/show.h"
#include "report/document.h"

namespace oomscope {

// `segments` may be empty (it costs a second replay): then the map is left out.
[[nodiscard]] Document show_document(const Shown& shown, GroupBy by, const std::vector<SegmentHarm>& segments,
                                     int64_t top);

}  // namespace oomscope
