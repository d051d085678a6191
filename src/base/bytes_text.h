// Byte sizes and counts as text: the one parser and the one formatter of the project.
//
// Rule for reading: every unit is binary. `24GiB`, `512M` and `8GB` are 24 * 2^30, 512 * 2^20 and 8 * 2^30 bytes: cards
// are sold by "GB" and mean GiB, and PyTorch's own `_mb` settings mean MiB. Rule for writing: a lone size is written
// as people read it (`format_bytes`), a column of sizes is all in MiB so that the eye compares digits (`format_mib`).
// Neither looks at the locale.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oomscope {

constexpr int64_t kKiB = int64_t{1} << 10;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kTiB = int64_t{1} << 40;

// Accepts a number, optionally with a fraction or thousands commas, then a unit: none (bytes), B, K, KB, KiB, M ...
// TiB, in any case, blanks allowed around both. A fraction of a byte is cut off. Errors: bad-size, size-out-of-range.
[[nodiscard]] Result<int64_t> parse_size(std::string_view text);

// "512 B", "20.00 MiB", "6.31 GiB", "1,024.00 GiB": two decimals, the largest of KiB, MiB, GiB that is at least 1.
// PyTorch's messages differ at one point: they go on to the next unit only above 1024.00.
[[nodiscard]] std::string format_bytes(int64_t size_bytes);
[[nodiscard]] std::string format_bytes_signed(int64_t difference_bytes);  // "+20.00 MiB", "-6.31 GiB", "0 B"

// "6,465 MiB", to the nearest MiB. What is not zero never reads as zero: "<1 MiB".
[[nodiscard]] std::string format_mib(int64_t size_bytes);
[[nodiscard]] std::string format_mib_signed(int64_t difference_bytes);  // "+12 MiB", "-5,897 MiB", "0 MiB"

// Rows of a column whose total is their sum, none negative: each as a size that format_mib writes to a MiB above or
// below the nearest where that is needed for the rows, as they read, to add up to the total as it reads.
[[nodiscard]] std::vector<int64_t> mib_adding_up(std::span<const int64_t> bytes);

[[nodiscard]] std::string format_count(int64_t count);  // "1,468,706"

[[nodiscard]] std::string format_address(uint64_t address);  // "0x7f0a2c000000"

// "12.3 %", one decimal, "-" when whole is 0. Rounds half up.
[[nodiscard]] std::string format_percent(int64_t part, int64_t whole);

}  // namespace oomscope
