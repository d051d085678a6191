// oomscope show SNAPSHOT: the state of the allocator at one moment.
#include <array>
#include <charconv>
#include "cli/arguments.h"
#include "cli/commands.h"

namespace oomscope {
namespace {

Result<Done> read_number(const std::string& option, const std::string& text, int64_t& number) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc{} && read.ptr == end && number >= 0) return Done{};
  return Error{.code = "bad-usage", .what = "not a number from 0 on", .where = option, .hint = "oomscope show --help"};
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  constexpr std::array<ShowAt, 3> kMoments = {ShowAt::peak, ShowAt::end, ShowAt::oom};
  constexpr std::array<ShowBy, 5> kKeys = {ShowBy::stack, ShowBy::category, ShowBy::size, ShowBy::stream,
                                           ShowBy::segment};
  ShowArguments& show = options.show;
  show.snapshot.path = raw.path;
  if (!raw.at.empty() && raw.at[0] >= '0' && raw.at[0] <= '9') {
    show.at = ShowAt::event;
    OOM_TRY([[maybe_unused]] const Done event, read_number("--at", raw.at, show.event));
  } else if (!raw.at.empty()) {
    OOM_TRY(const size_t index, read_choice("--at", raw.at, {"peak", "end", "oom"}));
    show.at = kMoments[index];
  }
  if (!raw.by.empty()) {
    OOM_TRY(const size_t index, read_choice("--by", raw.by, {"stack", "category", "size", "stream", "segment"}));
    show.by = kKeys[index];
  }
  if (!raw.top.empty()) {
    OOM_TRY([[maybe_unused]] const Done top, read_number("--top", raw.top, show.top));
  }
  return read_device(raw.device, show.snapshot.device);
}

}  // namespace

Command show_command() {
  return Command{.name = "show",
                 .summary = "what was allocated at the peak, at the end or at the failure",
                 .examples = {"oomscope show oom.pickle", "oomscope show oom.pickle --at oom --by segment"},
                 .options = {{"SNAPSHOT", "", "a snapshot; - is standard input", &RawOptions::path},
                             {"--at", "WHEN", "peak (default), end, oom, or the number of an event", &RawOptions::at},
                             {"--by", "KEY", "stack (default), category, size, stream or segment", &RawOptions::by},
                             {"--top", "N", "rows before the rest is one row (default 15)", &RawOptions::top},
                             {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device}},
                 .finish = finish,
                 .run = nullptr};
}

}  // namespace oomscope
