// Tracebacks and progress before a message: what the program was doing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/text/squeeze.h"
#include "types/text_evidence.h"

namespace oomscope {

// The frames of the last traceback of `lines`, outermost first: Python's and IPython's forms. With `rank` only lines of
// that rank count, where lines carry ranks. At most kMostFrames.
constexpr size_t kMostFrames = 200;
[[nodiscard]] std::vector<TextFrame> last_traceback(std::span<const CleanLine> lines, std::optional<int> rank);

// The error that ends the last traceback, if little stands behind it: what the program died of where nothing else is
// said. Empty where it names memory, or where no line is one.
struct LastError {
  std::string name;      // "KeyError"
  std::string text;      // the line, shortened
  size_t raw_begin = 0;  // in the raw piece
};
[[nodiscard]] std::optional<LastError> last_error(std::span<const CleanLine> lines);

// Lines that tell of progress ("Epoch 3/10", "Validation", a bar), the last few, oldest first.
[[nodiscard]] std::vector<std::string> progress_lines(std::span<const CleanLine> lines);

// The last line with anything on it, shortened.
[[nodiscard]] std::string last_line(std::span<const CleanLine> lines);

// The last "2024-05-11 14:10:52.2" of the text, with "Z", "UTC" or an offset behind it in UTC.
[[nodiscard]] std::optional<PrintedTime> last_time(std::string_view raw);

}  // namespace oomscope
