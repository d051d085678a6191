// oomscope diff A B: what changed from one recording to the other.
#include <array>
#include <string_view>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "report/diff_document.h"

namespace oomscope {
namespace {

constexpr std::string_view kStep = "step ";

Result<Done> read_moment(const std::string& text, DiffMoment& at) {
  constexpr std::array<Moment, 3> kMoments = {Moment::peak, Moment::end, Moment::oom};
  if (text.empty()) return Done{};
  if (text.starts_with(kStep) || text.starts_with("step:")) {
    int64_t step = 1;
    OOM_TRY([[maybe_unused]] const Done number, read_number("--at step", text.substr(kStep.size()), step));
    at.step = step;
    return Done{};
  }
  OOM_TRY(const size_t index, read_choice("--at", text, {"peak", "end", "oom", "step N"}));  // "step N" was read above
  at.moment = kMoments[index];
  return Done{};
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  DiffArguments& diff = options.diff;
  diff.a.path = raw.path;
  diff.b.path = raw.path_b;
  if (raw.path == "-" && raw.path_b == "-") {
    return Error{.code = "bad-usage",
                 .what = "error.one-standard-input",
                 .where = "diff",
                 .hint = "oomscope diff before.pickle after.pickle"};
  }
  OOM_TRY([[maybe_unused]] const Done at, read_moment(raw.at, diff.at));
  OOM_TRY([[maybe_unused]] const Done top, read_number("--top", raw.top, diff.top));
  OOM_TRY([[maybe_unused]] const Done device, read_device(raw.device, diff.a.device));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, diff.language));
  diff.b.device = diff.a.device;
  return Done{};
}

Result<int> run(const Options& options, Output& output) {
  const DiffArguments& arguments = options.diff;
  OOM_TRY(const LoadedRecording a, load_recording(arguments.a));
  OOM_TRY(const LoadedRecording b, load_recording(arguments.b));
  OOM_TRY(const Diff diff, find_differences(*a.verification, *b.verification, arguments.at));
  Document document = diff_document(diff, arguments.a.path, arguments.b.path, arguments.top, arguments.language);
  for (Section& section : document.sections) output.add(std::move(section));
  output.payload() = std::move(document.payload);
  if (!a.snapshot->complete || !b.snapshot->complete) output.set_incomplete();
  return 0;
}

}  // namespace

Command diff_command() {
  return Command{
      .name = "diff",
      .summary = "what changed from one recording to another, by line of code",
      .examples = {"oomscope diff before.pickle after.pickle", "oomscope diff before.pickle after.pickle --at step 3"},
      .options = {{"A", "", "the recording before", &RawOptions::path},
                  {"B", "", "the recording after", &RawOptions::path_b},
                  {"--at", "WHEN", "peak (default), end, oom, or step N: the peak of that step", &RawOptions::at},
                  {"--top", "N", "rows before the rest is one row (default 15)", &RawOptions::top},
                  {"--device", "N", "the device, where snapshots hold several", &RawOptions::device},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
