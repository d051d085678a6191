// oomscope baseline save|list|compare: is this run worse than the last.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "analysis/compare_peaks.h"
#include "cli/arguments.h"
#include "cli/baseline_store.h"
#include "cli/commands.h"
#include "cli/write_file.h"
#include "evidence/peaks_file.h"
#include "evidence/small_file.h"
#include "report/baseline_document.h"

namespace oomscope {
namespace {

namespace fs = std::filesystem;

Error bad_usage(std::string what, std::string where, Values values = {}) {
  return Error{.code = "bad-usage",
               .what = std::move(what),
               .where = std::move(where),
               .hint = "oomscope baseline compare peaks.json",
               .values = std::move(values)};
}

Result<Done> read_percent(const std::string& text, double& percent) {
  if (text.empty()) return Done{};
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  const std::from_chars_result read = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (read.ec == std::errc{} && read.ptr == number.data() + number.size() && percent >= 0 && percent <= 1000) {
    return Done{};
  }
  return bad_usage("error.baseline.percent", "--tolerance", {{"text", text}});
}

Result<Done> finish(const RawOptions& raw, Options& options) {
  BaselineArguments& baseline = options.baseline;
  const std::vector<std::string>& words = raw.evidence;
  if (words.empty()) return bad_usage("error.baseline.no-action", "baseline");
  OOM_TRY(const size_t action, read_choice("baseline", words[0], {"save", "list", "compare"}));
  constexpr std::array<BaselineAction, 3> kActions = {BaselineAction::save, BaselineAction::list,
                                                      BaselineAction::compare};
  baseline.action = kActions[action];
  const size_t files = baseline.action == BaselineAction::list ? 0 : 1;
  if (words.size() - 1 < files) return bad_usage("error.baseline.no-file", "baseline " + words[0]);
  if (words.size() - 1 > files)
    return bad_usage(files == 0 ? "error.baseline.takes-none" : "error.baseline.takes-one", words[0]);
  if (files == 1) baseline.path = words[1];
  baseline.name = raw.name;
  baseline.project = raw.project;
  baseline.store = raw.store;
  baseline.junit = raw.junit;
  baseline.or_save = raw.or_save;
  if ((!raw.junit.empty() || raw.or_save) && baseline.action != BaselineAction::compare) {
    return bad_usage(raw.or_save ? "error.baseline.or-save" : "error.baseline.junit", "baseline " + words[0]);
  }
  OOM_TRY([[maybe_unused]] const Done percent, read_percent(raw.tolerance, baseline.tolerance_percent));
  return read_language(raw.language, baseline.language);
}

// The project: the nearest folder above that holds a git repository, else the working folder.
std::string project_here() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  for (fs::path folder = here; !folder.empty(); folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", failed)) return folder.string();
    if (folder == folder.root_path()) break;
  }
  return here.string();
}

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// --store, OOMSCOPE_STORE, XDG_DATA_HOME, HOME.
Result<std::string> store_path(const BaselineArguments& arguments) {
  if (!arguments.store.empty()) return arguments.store;
  if (std::string named = environment_text("OOMSCOPE_STORE"); !named.empty()) return named;
  std::string data = environment_text("XDG_DATA_HOME");
  if (data.empty()) {
    const std::string home = environment_text("HOME");
    if (home.empty()) {
      return Error{.code = "store-missing",
                   .what = "error.baseline.no-home",
                   .where = "baseline",
                   .hint = "error.baseline.no-home.hint"};
    }
    data = home + "/.local/share";
  }
  return data + "/oomscope/baselines.sqlite";
}

// FNV-1a over the command and the allocator's settings: what makes two runs the same run.
std::string configuration_of(const Peaks& peaks) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  mix(peaks.command);
  for (const auto& [name, value] : peaks.environment) {
    if (!name.starts_with("PYTORCH_")) continue;
    mix(name);
    mix(value);
  }
  return fmt::format("{:016x}", hash);
}

Result<BaselineEntry> entry_of(StoredBaseline stored) {
  OOM_TRY(Peaks peaks, read_peaks(stored.peaks_json, "baseline " + stored.name));
  return BaselineEntry{.project = std::move(stored.project),
                       .name = std::move(stored.name),
                       .configuration = std::move(stored.configuration),
                       .saved_at_s = stored.saved_at_s,
                       .peaks = std::move(peaks)};
}

// --name, else the configuration's hash: the same command under the same settings finds its own baseline.
std::string name_for(const BaselineArguments& arguments, const std::string& configuration) {
  return arguments.name.empty() ? configuration : arguments.name;
}

void print(Document document, Output& output) {
  for (Section& section : document.sections) output.add(std::move(section));
  output.payload() = std::move(document.payload);
}

Result<int> save(const BaselineArguments& arguments, const std::string& project, Output& output) {
  OOM_TRY(std::string text, read_small_file(arguments.path, "error.peaks.hint"));
  OOM_TRY(const Peaks peaks, read_peaks(text, arguments.path));
  OOM_TRY(const std::string path, store_path(arguments));
  OOM_TRY(BaselineStore store, BaselineStore::open(path, true));
  const std::chrono::seconds now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  StoredBaseline stored{.project = project,
                        .name = name_for(arguments, configuration_of(peaks)),
                        .configuration = configuration_of(peaks),
                        .saved_at_s = now.count(),
                        .peaks_json = std::move(text)};
  OOM_TRY([[maybe_unused]] const Done saved, store.save(stored));
  OOM_TRY(const BaselineEntry entry, entry_of(std::move(stored)));
  print(saved_document(entry, arguments.language), output);
  return 0;
}

Result<int> list(const BaselineArguments& arguments, const std::string& project, Output& output) {
  OOM_TRY(const std::string path, store_path(arguments));
  std::vector<BaselineEntry> entries;
  Result<BaselineStore> store = BaselineStore::open(path, false);
  if (store) {
    OOM_TRY(std::vector<StoredBaseline> all, store->list(arguments.project.empty() ? "" : project));
    for (StoredBaseline& each : all) {
      OOM_TRY(BaselineEntry entry, entry_of(std::move(each)));
      entries.push_back(std::move(entry));
    }
  } else if (store.error().code != "store-missing") {
    return store.error();
  }
  print(list_document(entries, arguments.language), output);
  return 0;
}

Result<int> compare(const BaselineArguments& arguments, const std::string& project, Output& output) {
  OOM_TRY(const std::string text, read_small_file(arguments.path, "error.peaks.hint"));
  OOM_TRY(const Peaks now, read_peaks(text, arguments.path));
  OOM_TRY(const std::string path, store_path(arguments));
  OOM_TRY(BaselineStore store, BaselineStore::open(path, arguments.or_save));
  OOM_TRY(std::vector<StoredBaseline> all, store.list(project));
  const std::string name = name_for(arguments, configuration_of(now));
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StoredBaseline& each) { return each.name == name; });
  if (found == all.end() && arguments.or_save) return save(arguments, project, output);
  if (found == all.end()) {
    return Error{.code = "baseline-unknown",
                 .what = "error.baseline-unknown",
                 .where = path,
                 .hint = "error.baseline-unknown.hint",
                 .values = {{"name", name}, {"path", arguments.path}}};
  }
  OOM_TRY(const BaselineEntry baseline, entry_of(std::move(*found)));
  const PeaksComparison comparison = compare_peaks(baseline.peaks, now, {.percent = arguments.tolerance_percent});
  print(comparison_document(baseline, now, comparison, arguments.language), output);
  if (!arguments.junit.empty()) {
    OOM_TRY([[maybe_unused]] const Done written, write_file(arguments.junit, comparison_junit(baseline, comparison)));
  }
  return comparison.has_regression() ? 1 : 0;
}

Result<int> run(const Options& options, Output& output) {
  const BaselineArguments& arguments = options.baseline;
  const std::string project = arguments.project.empty() ? project_here() : arguments.project;
  switch (arguments.action) {
    case BaselineAction::save: return save(arguments, project, output);
    case BaselineAction::list: return list(arguments, project, output);
    case BaselineAction::compare: return compare(arguments, project, output);
  }
  return 0;
}

}  // namespace

Command baseline_command() {
  return Command{
      .name = "baseline",
      .summary = "is this run worse than the last: save, list or compare peaks",
      .examples = {"oomscope baseline save peaks.json --name nightly",
                   "oomscope baseline compare peaks.json --name nightly --junit memory.xml", "oomscope baseline list"},
      .options = {{"ACTION", "", "save PEAKS.json, list, or compare PEAKS.json", &RawOptions::evidence},
                  {"--name", "NAME", "of the baseline; else command and settings identify it", &RawOptions::name},
                  {"--project", "PATH", "whose baselines; else the git repository here, or this folder",
                   &RawOptions::project},
                  {"--tolerance", "PERCENT", "growth that is still the same (default 2)", &RawOptions::tolerance},
                  {"--or-save", "", "of compare: where no baseline has that name yet, save the run as it",
                   &RawOptions::or_save},
                  {"--junit", "FILE", "also write the comparison as JUnit XML", &RawOptions::junit},
                  {"--store", "FILE", "where baselines are; else OOMSCOPE_STORE, or the user's data folder",
                   &RawOptions::store},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
