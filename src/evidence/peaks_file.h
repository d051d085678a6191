// peaks.json: the peaks of a run as another program wrote them (docs/formats/peaks.md).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "types/peaks.h"

namespace oomscope {

// `name` is for people. Errors: peaks-not-json, peaks-incomplete.
[[nodiscard]] Result<Peaks> read_peaks(std::string_view text, const std::string& name);

}  // namespace oomscope
