// Sizes as messages print them.
#pragma once

#include <optional>
#include <string_view>

namespace oomscope {

// "15.75GiB", "579.50 KiB", "0 bytes", "4292kB", "-1.5 GiB": every unit is a power of 1024. Empty: no size. A double,
// since counters that wrapped around do not fit an integer.
[[nodiscard]] std::optional<double> printed_bytes(std::string_view text);

}  // namespace oomscope
