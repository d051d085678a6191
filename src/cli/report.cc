// oomscope report EVIDENCE... -o FILE: the answer of `why` to look at, or to hand on. The ending of FILE says as what.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "analysis/diff.h"
#include "base/bytes_text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "cli/why.h"
#include "cli/why_evidence.h"
#include "cli/write_file.h"
#include "evidence/rank_files.h"
#include "report/diff_document.h"
#include "report/exports.h"
#include "report/picture.h"
#include "report/redact.h"
#include "report/report_page.h"

namespace oomscope {
namespace {

constexpr size_t kCurvePoints = 400;

struct Format {
  std::string_view ending;
  bool needs_recording;  // a log alone has nothing for it
  std::string (*write)(const Page& page, const nlohmann::ordered_json& payload);
};

std::string write_page(const Page& page, const nlohmann::ordered_json&) { return render_page(page); }
std::string write_svg(const Page& page, const nlohmann::ordered_json&) {
  return svg_of(picture_of(page, page.language), /*inline_in_page=*/false);
}
// The font of PNG has no Chinese.
std::string write_png(const Page& page, const nlohmann::ordered_json&) {
  return png_of(picture_of(page, Language::english));
}

std::string write_events(const Page& page, const nlohmann::ordered_json&) {
  return events_csv(page.recordings.front().view);
}
std::string write_live(const Page& page, const nlohmann::ordered_json&) {
  return live_csv(page.recordings.front().view);
}
std::string write_markdown(const Page& page, const nlohmann::ordered_json&) { return report_markdown(page); }
std::string write_perfetto(const Page& page, const nlohmann::ordered_json&) { return perfetto_trace(page); }

// The first that fits counts.
constexpr std::array<Format, 9> kFormats = {{
    {".html", false, write_page},
    {".svg", true, write_svg},
    {".png", true, write_png},
    {".live.csv", true, write_live},
    {".csv", true, write_events},
    {".json", false, report_json},
    {".md", false, write_markdown},
    {".perfetto-trace", true, write_perfetto},
    {".pftrace", true, write_perfetto},
}};

const Format* format_of(std::string_view path) {
  for (const Format& format : kFormats) {
    if (path.ends_with(format.ending)) return &format;
  }
  return nullptr;
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  ReportArguments& report = options.report;
  if (raw.evidence.empty() || raw.output.empty()) {
    return Error{.code = "bad-usage",
                 .what = raw.evidence.empty() ? "error.no-evidence" : "error.no-output",
                 .where = "report",
                 .hint = "oomscope report oom.pickle -o oom.html"};
  }
  if (format_of(raw.output) == nullptr) {
    std::string endings;
    for (const Format& format : kFormats) endings += (endings.empty() ? "" : " ") + std::string(format.ending);
    return Error{.code = "bad-usage",
                 .what = "error.unknown-ending",
                 .where = "-o " + raw.output,
                 .hint = "error.unknown-ending.hint",
                 .values = {{"endings", endings}}};
  }
  report.output_path = raw.output;
  report.redact = raw.redact;
  report.why.evidence = raw.evidence;
  report.why.rules = raw.rules;
  report.why.no_sweep = raw.no_sweep;
  OOM_TRY([[maybe_unused]] const Done device, read_device(raw.device, report.why.device));
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, report.why.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, report.why.language));
  return read_gpu(raw.gpu, report.why.gpu);
}

std::string name_of_file(const std::string& path, Language language) {
  const std::string name = std::filesystem::path(path).filename().string();
  return path == "-" ? say("error.standard-input", language) : name.empty() ? path : name;
}

// What `why` says of any evidence, with the recordings that it explained.
Result<Page> explain_into_page(const WhyArguments& arguments, nlohmann::ordered_json& payload, Output& shown) {
  Page page;
  page.language = arguments.language;
  Output output(nullptr, /*json=*/true, TerminalOptions{}, &shown.progress());
  size_t first = 0;
  size_t end = 0;
  std::unique_ptr<RecordingView> view;
  const ExplainListener listener{
      .curve_points = kCurvePoints,
      .read =
          [&](const Snapshot& snapshot, const Diagnosis& diagnosis, const RunFacts& facts) {
            view = std::make_unique<RecordingView>(view_recording(snapshot, diagnosis, facts));
          },
      .explained =
          [&](const ExplainedRecording& explained) {
            add_curves(explained.changes, *view);
            page.recordings.push_back(
                {.name = name_of_file(explained.path, arguments.language), .view = std::move(*view)});
            page.answer = answer_of(explained.diagnosis, explained.changes, explained.findings, explained.path,
                                    arguments.language);
            first = explained.first_section;
            end = explained.end_section;
          },
      .compared = [&](const RanksReport& ranks) { page.ranks = ranks; }};
  WhyArguments listened = arguments;
  listened.listener = &listener;
  OOM_TRY([[maybe_unused]] const int code, explain_evidence(listened, output));
  const std::vector<Section>& said = output.document().sections;
  page.before.assign(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(page.answer ? first : said.size()));
  if (page.answer) page.after.assign(said.begin() + static_cast<std::ptrdiff_t>(end), said.end());
  // Several recordings that have nothing to do with each other: all that was said of them, and their timelines.
  if (page.recordings.size() > 1) {
    page.before = said;
    page.answer.reset();
    page.after.clear();
  }
  payload = std::move(output.payload());
  if (!output.is_complete()) shown.set_incomplete();
  return page;
}

Result<PageRecording> view_of(const LoadedRecording& recording, const std::string& path, Language language) {
  OOM_TRY(const Diagnosis diagnosis, diagnose(*recording.snapshot, recording.verification->timeline.device, {}));
  const RunFacts facts = find_run_facts(*recording.snapshot, diagnosis);
  return PageRecording{.name = name_of_file(path, language),
                       .view = view_recording(*recording.snapshot, diagnosis, facts)};
}

// Two recordings, before and after: what `diff` says, and both timelines.
Result<Page> diff_into_page(const WhyArguments& arguments, nlohmann::ordered_json& payload) {
  constexpr int64_t kRowsShown = 40;
  const std::string& path_a = arguments.evidence[0];
  const std::string& path_b = arguments.evidence[1];
  OOM_TRY(const LoadedRecording a,
          load_recording({.path = path_a, .device = arguments.device, .rules = arguments.rules}));
  OOM_TRY(const LoadedRecording b,
          load_recording({.path = path_b, .device = arguments.device, .rules = arguments.rules}));
  OOM_TRY(const Diff diff, find_differences(*a.verification, *b.verification, {}));
  Page page;
  page.language = arguments.language;
  page.differences = largest_differences(diff, arguments.language);
  Document document = diff_document(diff, path_a, path_b, kRowsShown, arguments.language);
  page.before = std::move(document.sections);
  payload = std::move(document.payload);
  OOM_TRY(PageRecording view_a, view_of(a, path_a, arguments.language));
  OOM_TRY(PageRecording view_b, view_of(b, path_b, arguments.language));
  page.recordings.push_back(std::move(view_a));
  page.recordings.push_back(std::move(view_b));
  return page;
}

bool are_before_and_after(const std::vector<std::string>& evidence) {
  if (evidence.size() != 2) return false;
  for (const std::string& path : evidence) {
    const bool is_snapshot = path != "-" && !is_folder(path) && is_snapshot_name(path);
    if (!is_snapshot) return false;
  }
  return !look_like_ranks(evidence);
}

// A snapshot may lie inside an HTML page.
Result<Done> spare_evidence(const ReportArguments& arguments) {
  for (const std::string& path : arguments.why.evidence) {
    std::error_code unknown;
    if (!std::filesystem::equivalent(path, arguments.output_path, unknown)) continue;
    return Error{.code = "bad-usage",
                 .what = "error.is-the-evidence",
                 .where = "-o " + arguments.output_path,
                 .hint = "error.is-the-evidence.hint"};
  }
  return Done{};
}

std::string environment_text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Result<int> run(const Options& options, Output& output) {
  const ReportArguments& arguments = options.report;
  OOM_TRY([[maybe_unused]] const Done spared, spare_evidence(arguments));
  nlohmann::ordered_json payload;
  OOM_TRY(Page page, are_before_and_after(arguments.why.evidence) ? diff_into_page(arguments.why, payload)
                                                                  : explain_into_page(arguments.why, payload, output));
  std::vector<std::string> names = distinct_names(arguments.why.evidence);
  std::replace(names.begin(), names.end(), std::string("-"), say("error.standard-input", arguments.why.language));
  for (const std::string& name : names) page.title += (page.title.empty() ? "" : ", ") + name;
  if (!page.differences.empty()) {
    page.recordings[0].name = "A: " + names[0];
    page.recordings[1].name = "B: " + names[1];
  }
  if (arguments.redact) {
    Redactor redactor(arguments.why.evidence, {environment_text("USER"), environment_text("LOGNAME"), host_name()});
    redactor.learn(page);
    redactor.apply(page);
    redactor.apply(payload);
  }
  const Format& format = *format_of(arguments.output_path);
  if (format.needs_recording && page.recordings.empty()) {
    return Error{.code = "nothing-to-write",
                 .what = "error.nothing-to-write",
                 .where = "-o " + arguments.output_path,
                 .hint = "error.nothing-to-write.hint"};
  }
  const std::string bytes = format.write(page, payload);
  OOM_TRY([[maybe_unused]] const Done written, write_file(arguments.output_path, bytes));
  const std::string size = format_bytes(static_cast<int64_t>(bytes.size()));
  output.add_sentence(say(Phrase{.key = "page.written"}.with("file", arguments.output_path).with("size", size),
                          arguments.why.language));
  output.payload() = {{"schema", "oomscope.report-written/1"},
                      {"file", arguments.output_path},
                      {"bytes", bytes.size()},
                      {"answer", std::move(payload)}};
  return 0;
}

}  // namespace

Command report_command() {
  return Command{
      .name = "report",
      .summary = "the same as a page to look at, or as a picture or table to hand on",
      .examples = {"oomscope report oom.pickle -o oom.html", "oomscope report before.pickle after.pickle -o diff.html",
                   "oomscope report ranks/ -o ranks.html", "oomscope report oom.pickle --redact -o oom.html",
                   "oomscope report oom.pickle -o timeline.png"},
      .options = {{"EVIDENCE", "", "as for why; two snapshots: what changed from the first to the second",
                   &RawOptions::evidence},
                  {"-o,--output", "FILE", "what to write; its ending says as what", &RawOptions::output},
                  {"--redact", "", "hide paths, user and host names", &RawOptions::redact},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  {"--no-sweep", "", "do not replay other settings: the cause and its changes", &RawOptions::no_sweep},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
