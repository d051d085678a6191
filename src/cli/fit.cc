// oomscope fit A B...: what a run at another batch, length or size would need, and the largest that fits.
#include "plan/fit.h"

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
    OOM_TRY(fit.values, parse_values(raw.values));
    if (fit.values->size() != fit.recordings.size()) {
      return Error{.code = "bad-usage",
                   .what = "error.values-for-recordings",
                   .where = "--values",
                   .hint = "error.values.hint",
                   .values = {{"values", std::to_string(fit.values->size())},
                              {"recordings", std::to_string(fit.recordings.size())}}};
    }
  }
  if (!raw.at.empty()) {
    OOM_TRY(const std::vector<int64_t> at, parse_values(raw.at));
    if (at.size() != 1) {
      return Error{.code = "bad-usage", .what = "error.one-value", .where = "--at", .hint = "--at 32"};
    }
    fit.at = at[0];
  }
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, fit.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done gpu, read_gpu(raw.gpu, fit.gpu));
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, fit.language));
  return read_device(raw.device, fit.device);
}

// What would make the next value fit: the one asked for, else the first that does not fit, else the largest recorded.
void try_measures(FitReport& report, const FitQuestion& question, const Verification& base, bool only_step) {
  const ScalingModel& model = report.model;
  report.measures_at = question.at.value_or(model.base_value());
  if (!question.at && question.cap_bytes && model.values.size() > 1) {
    report.measures_at = report.fit.largest.value_or(0) + 1;
  }
  const Structure structure = find_structure(base.timeline);
  const Job job = make_job(base, structure, requests_at(model, report.measures_at));
  const WhatIf what_if{.rules = question.rules, .settings = question.settings, .cap_bytes = question.cap_bytes};
  report.step = step_series(job, kStepColumns);
  if (only_step) return;
  report.measures = evaluate_measures(job, what_if, question.threads);
  std::vector<std::string> confs = {report.conf};
  if (report.conf.find("expandable_segments:True") == std::string::npos) confs.emplace_back("expandable_segments:True");
  report.search = find_sets(job, what_if, report.measures, confs, question.threads);
}

Result<Done> write_picture(const FitReport& report, const FitArguments& arguments) {
  StepPicture picture{.before = report.step, .after = {}, .capacity_bytes = report.cap_bytes};
  if (!report.search.fitting.empty()) picture.after = report.search.fitting.front().step;
  return write_file(arguments.picture_path, draw(picture, arguments.language));
}

Result<int> run(const Options& options, Output& output) {
  const FitArguments& arguments = options.fit;
  std::vector<LoadedRecording> recordings;
  std::vector<ScalingInput> inputs;
  FitReport report;
  for (const std::string& path : arguments.recordings) {
    OOM_TRY(LoadedRecording loaded,
            load_recording({.path = path, .device = arguments.device, .rules = arguments.rules}));
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
                       .at = arguments.at,
                       .threads = thread_count(),
                       .progress = progress_of("progress.replaying", arguments.language, output)};
  OOM_TRY(question.settings, settings_of(arguments.conf, base, report.caveats));
  report.conf = arguments.conf ? *arguments.conf : to_conf_string(question.settings, question.rules.parser);
  report.cap_bytes = question.cap_bytes;
  report.paths = arguments.recordings;
  report.fit = find_fit(report.model, question);
  try_measures(report, question, base, arguments.no_measures);
  if (!arguments.picture_path.empty()) {
    OOM_TRY([[maybe_unused]] const Done drawn, write_picture(report, arguments));
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
                   "oomscope fit short.pickle long.pickle --values 128,256 --gpu \"RTX 4090\""},
      .options = {{"RECORDING...", "", "recordings that differ in one quantity; the largest tells most",
                   &RawOptions::evidence},
                  {"--values", "V,V", "that quantity, one a recording; else read from them", &RawOptions::values},
                  {"--at", "V", "a value to predict besides", &RawOptions::at},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--conf", "S", "settings as PYTORCH_ALLOC_CONF takes them; '' is PyTorch's defaults",
                   &RawOptions::conf},
                  {"--picture", "FILE.svg", "draw one step there: memory by category, before and after",
                   &RawOptions::picture},
                  {"--no-measures", "", "do not try what measures bring: faster", &RawOptions::no_measures},
                  {"--device", "N", "the device, where snapshots hold several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  {"--lang", "en|zh", "the language of the answer; else the locale's. JSON is English",
                   &RawOptions::language}},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
