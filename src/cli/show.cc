// oomscope show SNAPSHOT: the state of the allocator at one moment.
#include <array>
#include <utility>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "report/show_document.h"

namespace oomscope {
namespace {

Result<Done> finish(const RawOptions& raw, Options& options) {
  constexpr std::array<Moment, 3> kMoments = {Moment::peak, Moment::end, Moment::oom};
  constexpr std::array<GroupBy, 5> kKeys = {GroupBy::stack, GroupBy::category, GroupBy::size, GroupBy::stream,
                                            GroupBy::segment};
  ShowArguments& show = options.show;
  show.snapshot.path = raw.path;
  if (!raw.at.empty() && raw.at[0] >= '0' && raw.at[0] <= '9') {
    show.at = Moment::event;
    OOM_TRY([[maybe_unused]] const Done event, read_number("--at", raw.at, show.event));
  } else if (!raw.at.empty()) {
    Result<size_t> choice = read_choice("--at", raw.at, {"peak", "end", "oom"});
    if (!choice) choice.error().what = "error.none-of-or-event";
    OOM_TRY(const size_t index, std::move(choice));
    show.at = kMoments[index];
  }
  if (!raw.by.empty()) {
    OOM_TRY(const size_t index, read_choice("--by", raw.by, {"stack", "category", "size", "stream", "segment"}));
    show.by = kKeys[index];
  }
  if (!raw.top.empty()) {
    OOM_TRY([[maybe_unused]] const Done top, read_number("--top", raw.top, show.top));
  }
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, show.snapshot.language));
  return read_device(raw.device, show.snapshot.device);
}

Result<int> run(const Options& options, Output& output) {
  const ShowArguments& arguments = options.show;
  const bool wants_steps = arguments.by == GroupBy::category;  // found by their times
  OOM_TRY(const LoadedRecording recording,
          load_recording(arguments.snapshot, {.in_two = true, .keeps_times = wants_steps}));
  OOM_TRY(const Shown shown,
          show_state(*recording.verification, arguments.at, arguments.event, arguments.by, !output.is_json()));
  // The map needs the state of every segment at that moment, which is a second replay: not for a program that did not
  // ask.
  const bool wants_map = !output.is_json() || arguments.by == GroupBy::segment;
  const std::vector<SegmentHarm> segments =
      wants_map ? segment_map(*recording.verification, shown.event) : std::vector<SegmentHarm>();
  Document document = show_document(shown, arguments.by, segments, arguments.top, arguments.snapshot.language);
  for (Section& section : document.sections) output.add(std::move(section));
  output.payload() = std::move(document.payload);
  if (!recording.snapshot->complete || shown.totals.events == 0) output.set_incomplete();
  return 0;
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
                             {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                             language_option()},
                 .finish = finish,
                 .run = run};
}

}  // namespace oomscope
