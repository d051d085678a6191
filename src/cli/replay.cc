// oomscope replay SNAPSHOT: what would have happened under other settings, or in less memory.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_snapshot.h"
#include "replay/lifetimes.h"
#include "replay/smallest_cap.h"
#include "replay/sweep.h"
#include "replay/verdict.h"
#include "replay/what_if.h"
#include "report/replay_document.h"
#include "types/recording_call.h"

namespace oomscope {
namespace {

Result<Done> finish(const RawOptions& raw, Options& options) {
  ReplayArguments& replay = options.replay;
  replay.snapshot.path = raw.path;
  replay.snapshot.rules = raw.rules;
  replay.sweep = raw.sweep;
  replay.smallest_cap = raw.smallest_cap;
  if (raw.has_conf) replay.conf = raw.conf;
  if (raw.has_conf && raw.sweep) {
    return Error{
        .code = "bad-usage", .what = "error.sweep-and-conf", .where = "replay", .hint = "oomscope replay --help"};
  }
  if (raw.sweep && raw.smallest_cap) {
    return Error{
        .code = "bad-usage", .what = "error.two-questions", .where = "replay", .hint = "oomscope replay --help"};
  }
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, replay.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done gpu, read_gpu(raw.gpu, replay.gpu));
  if (replay.smallest_cap && (replay.cap_bytes || replay.gpu)) {
    return Error{.code = "bad-usage",
                 .what = "error.cap-and-smallest-cap",
                 .where = "replay",
                 .hint = "oomscope replay SNAPSHOT --smallest-cap"};
  }
  OOM_TRY([[maybe_unused]] const Done language, read_language(raw.language, replay.snapshot.language));
  return read_device(raw.device, replay.snapshot.device);
}

// A memory fraction is a limit, where the card's size is known.
void apply_fraction(const std::optional<GpuMemory>& gpu, WhatIf& question, Caveats& caveats) {
  const double fraction = question.settings.per_process_memory_fraction;
  const bool is_preemptive = question.rules.preemptive_rejection && question.settings.throw_on_cudamalloc_oom;
  if (!(fraction < 1.0)) return;
  if (!gpu) {
    caveats.push_back({.code = "fraction-of-unknown-card", .values = {}, .source = CaveatSource::model});
  } else if (!is_preemptive) {  // the engine has that test of its own
    const int64_t limit = static_cast<int64_t>(fraction * static_cast<double>(gpu->total_bytes));
    if (question.cap_bytes && *question.cap_bytes <= limit) return;
    question.cap_bytes = limit;
    question.cap_kind = CapKind::limit;
  }
}

Result<WhatIf> ask(const ReplayArguments& arguments, const Verification& verification, Caveats& caveats) {
  WhatIf question{.rules = verification.config.rules,
                  .settings = {},
                  .cap_bytes = cap_of(arguments.cap_bytes, arguments.gpu, caveats)};
  OOM_TRY(question.settings, settings_of(arguments.conf, verification, caveats));
  if (question.settings.backend != "native") {
    return Error{.code = "backend-without-blocks",
                 .what = "error.backend-without-blocks",
                 .where = "backend:" + question.settings.backend,
                 .hint = "oomscope replay SNAPSHOT --conf ''"};
  }
  if (arguments.gpu) question.card_bytes = arguments.gpu->total_bytes;
  question.cap_kind = cap_kind_of(arguments.cap_bytes, arguments.gpu);
  apply_fraction(arguments.gpu, question, caveats);
  const bool has_limit = question.cap_bytes && question.cap_kind == CapKind::limit;
  if (has_limit || arguments.smallest_cap) drop_caveat("settings-gc-without-limit", caveats);
  return question;
}

void add_library_tries(int64_t count, Caveats& caveats) {
  if (count == 0) return;
  caveats.push_back(
      {.code = "library-tries", .values = {{"count", std::to_string(count)}}, .source = CaveatSource::model});
}

// When another stream is done with a block, only the run itself can tell.
void add_frees_that_waited(const RequestStream& requests, Caveats& caveats) {
  const auto count = std::count(requests.kind.begin(), requests.kind.end(), RequestKind::free_held);
  if (count == 0) return;
  caveats.push_back(
      {.code = "frees-waited", .values = {{"count", std::to_string(count)}}, .source = CaveatSource::model});
}

Result<std::vector<Verdict>> verdicts_of(const Verification& verification, const RequestStream& requests,
                                         const WhatIf& question, const Outcome& outcome, Language language,
                                         Output& output) {
  std::vector<Verdict> verdicts;
  if (outcome.completed || !question.cap_bytes || outcome.stopped_at_event == kNoEvent) return verdicts;
  const SweepOptions options{.cap_bytes = question.cap_bytes,
                             .cap_kind = question.cap_kind,
                             .threads = thread_count(),
                             .progress = progress_of("progress.replaying", language, output)};
  const std::vector<SweepRun> runs = sweep(requests, question.rules, options);
  FailedRequest failed{.event = outcome.stopped_at_event,
                       .size_bytes = outcome.refused_bytes,
                       .failure_index = 0,
                       .recorded = false,
                       .try_packing = true};
  for (size_t i = 0; i < requests.failures.size(); ++i) {
    if (requests.failures[i].event == outcome.stopped_at_event) {
      failed.recorded = true;
      failed.failure_index = i;
    }
  }
  OOM_TRY(const Verdict verdict,
          judge(verification, failed,
                Capacity{*question.cap_bytes, *question.cap_bytes, question.cap_kind == CapKind::limit}, runs));
  verdicts.push_back(verdict);
  return verdicts;
}

void publish(Document document, Output& output) {
  for (Section& section : document.sections) output.add(std::move(section));
  output.payload() = std::move(document.payload);
}

Result<Done> run_sweep(const Verification& verification, const RequestStream& requests, const WhatIf& question,
                       Caveats caveats, Language language, Output& output) {
  SweepResult result{.cap_bytes = question.cap_bytes, .runs = {}, .caveats = std::move(caveats)};
  const SweepOptions options{.cap_bytes = question.cap_bytes,
                             .cap_kind = question.cap_kind,
                             .threads = thread_count(),
                             .progress = progress_of("progress.replaying", language, output)};
  result.runs = sweep(requests, question.rules, options);
  add_library_tries(result.runs, result.caveats);
  if (question.cap_kind == CapKind::limit) {
    add_limit_caveat(question.cap_bytes, most_reserved(result.runs), result.caveats);
  }
  const LifetimeTable table = lifetimes_to_complete(verification);
  OOM_TRY(const Floor floor, floor_bytes(table.requested));
  OOM_TRY(const Floor pages, page_floor_bytes(table.rounded, table.page_bytes));
  OOM_TRY(const CheckedPacking packing, checked_packing(table.rounded));
  result.floor_bytes = floor.bytes;
  result.page_floor_bytes = pages.bytes;
  result.packing_bytes = packing.height_bytes;
  publish(sweep_document(result, verification, language), output);
  return Done{};
}

Result<Done> run_smallest_cap(const Verification& verification, const RequestStream& requests, const WhatIf& question,
                              const std::string& conf, Caveats caveats, Language language, Output& output) {
  const SmallestCapOptions options{.threads = thread_count(),
                                   .progress = progress_of("progress.searching", language, output)};
  const std::optional<SmallestCap> found = smallest_cap(requests, question, options);
  if (!found) {
    return Error{.code = "completes-nowhere",
                 .what = "error.completes-nowhere",
                 .where = conf,
                 .hint = "oomscope replay SNAPSHOT --sweep"};
  }
  add_library_tries(found->library_tries, caveats);
  publish(smallest_cap_document(conf, *found, caveats, verification, language), output);
  return Done{};
}

Result<int> run(const Options& options, Output& output) {
  const ReplayArguments& arguments = options.replay;
  const Language language = arguments.snapshot.language;
  OOM_TRY(const LoadedRecording recording, load_recording(arguments.snapshot));
  const Verification& verification = *recording.verification;
  if (verification.timeline.trace().size_events() == 0) {
    return Error{.code = "no-history",
                 .what = "error.no-history",
                 .where = arguments.snapshot.path,
                 .hint = "error.no-history.hint",
                 .values = {{"call", recording_call(*verification.timeline.snapshot)}}};
  }
  Caveats caveats;
  OOM_TRY(const WhatIf question, ask(arguments, verification, caveats));
  const RequestStream requests = requests_of(verification);
  add_replay_caveats(verification, caveats);
  add_frees_that_waited(requests, caveats);
  if (!requests.failures.empty() && requests.failures.back().last) {
    caveats.push_back({.code = "fits-until-the-failure", .values = {}, .source = CaveatSource::recording});
  }
  if (!recording.snapshot->complete) output.set_incomplete();
  const std::string conf = arguments.conf ? *arguments.conf : to_conf_string(question.settings, question.rules.parser);
  if (arguments.sweep) {
    OOM_TRY([[maybe_unused]] const Done swept, run_sweep(verification, requests, question, caveats, language, output));
    return 0;
  }
  if (arguments.smallest_cap) {
    OOM_TRY([[maybe_unused]] const Done found,
            run_smallest_cap(verification, requests, question, conf, caveats, language, output));
    return 0;
  }
  ReplayResult result{.conf = conf,
                      .cap_bytes = question.cap_bytes,
                      .outcome = replay_range(requests, question),
                      .verdicts = {},
                      .caveats = caveats};
  OOM_TRY(result.verdicts, verdicts_of(verification, requests, question, result.outcome.main, language, output));
  add_library_tries(result.outcome.main.library_tries, result.caveats);
  if (result.outcome.main.completed && question.cap_kind == CapKind::limit) {
    add_limit_caveat(question.cap_bytes, result.outcome.main.peak_reserved, result.caveats);
  }
  publish(replay_document(result, verification, language), output);
  return 0;
}

}  // namespace

Command replay_command() {
  return Command{
      .name = "replay",
      .summary = "what would have happened under other settings, or in less memory",
      .examples = {"oomscope replay oom.pickle --conf expandable_segments:True",
                   "oomscope replay oom.pickle --cap 20GiB", "oomscope replay oom.pickle --sweep",
                   "oomscope replay oom.pickle --smallest-cap"},
      .options = {{"SNAPSHOT", "", "a snapshot; - is standard input", &RawOptions::path},
                  {"--conf", "S", "settings as PYTORCH_ALLOC_CONF takes them; '' is PyTorch's defaults",
                   &RawOptions::conf},
                  {"--cap", "SIZE", "the most this process's allocator may reserve; else no limit", &RawOptions::cap},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--sweep", "", "try the settings that matter, best first", &RawOptions::sweep},
                  {"--smallest-cap", "", "the smallest memory it completes in", &RawOptions::smallest_cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying", &RawOptions::rules},
                  language_option()},
      .finish = finish,
      .run = run};
}

}  // namespace oomscope
