// oomscope fit A B...: what a run at another batch, length or size would need, and the largest that fits.
#include "plan/fit.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "cli/write_file.h"
#include "model/structure.h"
#include "plan/advice.h"
#include "report/fit_document.h"
#include "report/step_picture.h"

namespace oomscope {
namespace {

constexpr size_t kMostRecordings = 16;

constexpr std::array<std::string_view, 5> kFrameworks = {"pytorch", "transformers", "lightning", "accelerate",
                                                         "deepspeed"};

// By the ending; null for an unknown one. The letters in a PNG are those of the embedded font.
std::string (*picture_writer(std::string_view path))(const StepPicture&, Language) {
  if (path.ends_with(".svg")) {
    return [](const StepPicture& picture, Language language) { return svg_of(draw(picture, language), false); };
  }
  if (path.ends_with(".png")) {
    return [](const StepPicture& picture, Language) { return png_of(draw(picture, Language::english)); };
  }
  return nullptr;
}

Result<std::optional<int64_t>> read_one(std::string_view option, const std::string& text) {
  if (text.empty()) return std::optional<int64_t>();
  OOM_TRY(const std::vector<int64_t> values, parse_values(option, text));
  if (values.size() != 1) {
    return Error{
        .code = "bad-usage", .what = "error.one-value", .where = std::string(option), .hint = "oomscope fit --help"};
  }
  return std::optional(values[0]);
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  FitArguments& fit = options.fit;
  fit.recordings = raw.evidence;
  fit.rules = raw.rules;
  fit.picture_path = raw.picture;
  fit.no_measures = raw.no_measures;
  if (raw.has_conf) fit.conf = raw.conf;
  if (fit.recordings.empty() || fit.recordings.size() > kMostRecordings) {
    return Error{.code = "bad-usage",
                 .what = fit.recordings.empty() ? "error.recording-missing" : "error.too-many-recordings",
                 .where = "fit",
                 .hint = "oomscope fit --help",
                 .values = {{"count", std::to_string(kMostRecordings)}}};
  }
  if (!raw.values.empty()) {
    OOM_TRY(fit.values, parse_values("--values", raw.values));
    if (fit.values->size() != fit.recordings.size()) {
      return Error{.code = "bad-usage",
                   .what = "error.values-for-recordings",
                   .where = "--values",
                   .hint = "error.values.hint",
                   .values = {{"values", std::to_string(fit.values->size())},
                              {"recordings", std::to_string(fit.recordings.size())}}};
    }
  }
  OOM_TRY(fit.at, read_one("--at", raw.at));
  if (fit.at && fit.recordings.size() == 1) {
    return Error{.code = "bad-usage",
                 .what = "error.one-recording-at",
                 .where = "--at",
                 .hint = "oomscope fit A B --at " + std::to_string(*fit.at)};
  }
  OOM_TRY(fit.ranks, read_one("--ranks", raw.ranks));
  if (!raw.framework.empty()) {
    OOM_TRY(const size_t choice, read_choice("--framework", raw.framework, {kFrameworks.begin(), kFrameworks.end()}));
    fit.framework = choice == 0 ? "" : kFrameworks[choice];
  }
  if (!raw.picture.empty() && picture_writer(raw.picture) == nullptr) {
    return Error{.code = "bad-usage",
                 .what = "error.unknown-ending",
                 .where = "--picture " + raw.picture,
                 .hint = "error.unknown-ending.hint",
                 .values = {{"endings", ".svg .png"}}};
  }
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, fit.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done gpu, read_gpu(raw.gpu, fit.gpu));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, fit.language));
  return read_device(raw.device, fit.device);
}

// What would make the next value fit: the one asked for, else the first that does not fit, else the largest recorded.
// By how much the requests of a value that was not recorded may be off: whatever is built on them is no surer.
int64_t unsure_at(const FitReport& report, int64_t value) {
  for (const FitPoint& point : report.fit.points) {
    if (point.value != value || point.recorded || !report.model.is_guessed(value)) continue;
    const int64_t peak = point.outcome.main.peak_reserved;
    const double table = report.model.forecast ? kTableMargin : 0;
    return std::max(point.outcome.peak_reserved_high - peak, static_cast<int64_t>(table * static_cast<double>(peak)));
  }
  return 0;
}

void try_measures(FitReport& report, const FitQuestion& question, const Verification& base, bool only_step,
                  std::optional<int64_t> ranks) {
  const ScalingModel& model = report.model;
  report.measures_at = question.at.value_or(model.base_value());
  if (!question.at && question.cap_bytes && model.values.size() > 1) {
    report.measures_at = report.fit.largest.value_or(0) + 1;
  }
  const Structure structure = find_structure(base.timeline);
  Job job = make_job(base, structure, requests_at(model, report.measures_at));
  job.unsure_bytes = unsure_at(report, report.measures_at);
  const WhatIf what_if{.rules = question.rules,
                       .settings = question.settings,
                       .cap_bytes = question.cap_bytes,
                       .cap_kind = question.cap_kind};
  report.step = step_series(job, kStepColumns);
  if (only_step) return;
  JobSetting setting{.ranks = ranks, .batch = {}};
  if (model.are_batches) setting.batch = report.measures_at;
  report.batch = setting.batch;
  report.measures = evaluate_measures(job, what_if, setting, question.threads);
  std::vector<std::string> confs = {report.conf};
  if (report.conf.find("expandable_segments:True") == std::string::npos) confs.emplace_back("expandable_segments:True");
  report.search = find_sets(job, what_if, report.measures, confs, setting, question.threads);
}

Result<Done> write_picture(const FitReport& report, const FitArguments& arguments) {
  StepPicture picture{.before = report.step, .after = {}, .capacity_bytes = report.cap_bytes};
  if (!report.search.fitting.empty()) picture.after = report.search.fitting.front().step;
  return write_file(arguments.picture_path, picture_writer(arguments.picture_path)(picture, arguments.language));
}

Result<int> run(const Options& options, Output& output) {
  const FitArguments& arguments = options.fit;
  std::vector<LoadedRecording> recordings;
  std::vector<ScalingInput> inputs;
  FitReport report;
  for (const std::string& path : arguments.recordings) {
    OOM_TRY(LoadedRecording loaded,
            load_recording({.path = path, .device = arguments.device, .rules = arguments.rules}));
    if (!loaded.snapshot->complete && arguments.recordings.size() > 1) {
      return Error{
          .code = "recording-cut", .what = "error.recording-cut", .where = path, .hint = "error.recording-cut.hint"};
    }
    if (!loaded.snapshot->complete) output.set_incomplete();
    add_replay_caveats(*loaded.verification, report.caveats);
    inputs.push_back({.verification = loaded.verification.get(), .path = path});
    recordings.push_back(std::move(loaded));
  }
  OOM_TRY(report.model, scale(inputs, arguments.values));
  const Verification& base = *inputs[report.model.recordings.back()].verification;
  FitQuestion question{.rules = base.config.rules,
                       .settings = {},
                       .cap_bytes = cap_of(arguments.cap_bytes, arguments.gpu, report.caveats),
                       .cap_kind = cap_kind_of(arguments.cap_bytes, arguments.gpu),
                       .at = arguments.at,
                       .threads = thread_count(),
                       .progress = progress_of("progress.replaying", arguments.language, output)};
  OOM_TRY(question.settings, settings_of(arguments.conf, base, report.caveats));
  report.conf = arguments.conf ? *arguments.conf : to_conf_string(question.settings, question.rules.parser);
  report.cap_bytes = question.cap_bytes;
  report.paths = arguments.recordings;
  report.fit = find_fit(report.model, question);
  int64_t most = 0;
  for (const FitPoint& point : report.fit.points) {
    if (point.limited && point.limited->completed) {
      most = std::max(most, point.limited->peak_reserved);
    }
  }
  if (question.cap_kind == CapKind::limit) add_limit_caveat(question.cap_bytes, most, report.caveats);
  report.framework = arguments.framework;
  try_measures(report, question, base, arguments.no_measures, arguments.ranks);
  if (!arguments.picture_path.empty()) {
    std::error_code unknown;
    const bool replaces = std::filesystem::exists(arguments.picture_path, unknown);
    OOM_TRY([[maybe_unused]] const Done drawn, write_picture(report, arguments));
    report.picture = {arguments.picture_path, replaces};
  }
  Document document = fit_document(report, arguments.language);
  for (Section& section : document.sections) output.add(std::move(section));
  output.payload() = std::move(document.payload);
  return 0;
}

}  // namespace

Command fit_command() {
  return Command{
      .name = "fit",
      .summary = "the largest batch that fits, from small recordings",
      .examples = {"oomscope fit b1.pickle b2.pickle --gpu 24GiB",
                   "oomscope fit b1.pickle b2.pickle b3.pickle --cap 20GiB --at 32",
                   "oomscope fit short.pickle long.pickle --values 128,256 --gpu \"RTX 4090\"",
                   "oomscope fit one.pickle --gpu 24GiB --ranks 4 --framework deepspeed"},
      .options =
          {{"RECORDING...", "", "recordings that differ in one quantity; the largest tells most",
            &RawOptions::evidence},
           {"--values", "V,V", "that quantity, one a recording; else read from them", &RawOptions::values},
           {"--at", "V", "a value to predict besides", &RawOptions::at},
           {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
           {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
           {"--conf", "S", "settings as PYTORCH_ALLOC_CONF takes them; '' is PyTorch's defaults", &RawOptions::conf},
           {"--ranks", "N", "processes over which ZeRO and FSDP may divide the job; else 8 are shown, none searched",
            &RawOptions::ranks},
           {"--framework", "NAME", "of the lines to paste: pytorch, transformers, lightning, accelerate, deepspeed",
            &RawOptions::framework},
           {"--picture", "FILE", "draw one step there, .svg or .png: memory by category, before and after",
            &RawOptions::picture},
           {"--no-measures", "", "do not try what measures bring: faster", &RawOptions::no_measures},
           {"--device", "N", "the device, where snapshots hold several", &RawOptions::device},
           {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
           language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
